#include "compose/service_broker.hpp"

#include "compose/service_database.hpp"
#include "queries/migrations_sqlite_broker.hpp"
#include "settle/error.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/room.hpp"

namespace settle::compose {
namespace {

class embedded_view final : public broker_view {
 public:
  explicit embedded_view(std::unique_ptr<database> file) : file_(std::move(file)), inspection_(*file_) {}

  broker_inspection& inspection() override { return inspection_; }
  const environment& env() const override { return file_->env(); }

 private:
  std::unique_ptr<database> file_;
  sqlite::embedded_inspection inspection_;
};

}  // namespace

void check_broker(const std::string& url) {
  if (url.empty() || url.find("://") != std::string::npos || is_postgres(url))
    throw error(errc::invalid_argument, "a broker is a file; this is none");
}

bool is_broker_file(database& db) { return db.speaks() == dialect::sqlite && sqlite::is_broker_file(db); }

std::unique_ptr<broker_view> look_into_broker(std::unique_ptr<database> file) {
  return std::make_unique<embedded_view>(std::move(file));
}

std::unique_ptr<broker> open_broker(const std::string& path, const broker_options& with) {
  sqlite::broker_options options;
  options.env = with.env;
  options.busy_timeout = with.busy_timeout;
  options.partitions = with.partitions;
  options.lease_ttl = with.lease_ttl;
  options.keep = with.keep;
  options.bytes_max = with.bytes_max;
  return sqlite::open_broker(path, options);
}

std::unique_ptr<database> open_broker_file(const std::string& path, const broker_options& with) {
  return sqlite::open(path, {.env = with.env, .busy_timeout = with.busy_timeout});
}

std::span<const sql::migration> broker_migrations() { return migrations::sqlite_broker; }

std::string room_trouble(database& file, std::int64_t bytes_max) {
  auto tx = file.read();
  return sqlite::read_room(tx, bytes_max).trouble(file.name());
}

}  // namespace settle::compose
