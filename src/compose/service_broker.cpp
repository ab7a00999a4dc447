#include "compose/service_broker.hpp"

#include <fmt/format.h>

#include "compose/kafka.hpp"
#include "compose/rabbitmq.hpp"
#include "compose/service_database.hpp"
#include "queries/migrations_sqlite_broker.hpp"
#include "settle/error.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/room.hpp"

namespace settle::compose {
namespace {

class embedded_view final : public broker_view {
 public:
  embedded_view(std::unique_ptr<database> file, std::int64_t bytes_max)
      : file_(std::move(file)), inspection_(*file_), bytes_max_(bytes_max) {}

  broker_inspection& inspection() override { return inspection_; }
  const environment& env() const override { return file_->env(); }
  std::string trouble() override {
    const auto state = sql::read_migration_state(*file_, broker_migrations());
    if (state.applied != state.known)
      return fmt::format("{} is at schema version {}, this build needs {}", file_->name(), state.applied,
                         state.known);
    auto tx = file_->read();
    return sqlite::read_room(tx, bytes_max_).trouble(file_->name());
  }

 private:
  std::unique_ptr<database> file_;
  sqlite::embedded_inspection inspection_;
  std::int64_t bytes_max_;
};

class server_view final : public broker_view {
 public:
  server_view(std::unique_ptr<broker> server, const environment& env)
      : server_(std::move(server)), env_(env) {}

  broker_inspection& inspection() override { return *server_->inspection(); }
  const environment& env() const override { return env_; }
  std::string trouble() override { return inspection().trouble(); }

 private:
  std::unique_ptr<broker> server_;
  environment env_;
};

template <class Options>
Options with_common(Options made, const broker_options& with) {
  made.env = with.env;
  made.connect_timeout = with.server.connect_timeout;
  made.prefix = with.server.prefix;
  made.ca_file = with.server.ca_file;
  made.certificate_file = with.server.certificate_file;
  made.key_file = with.server.key_file;
  return made;
}

kafka::options kafka_options(const broker_options& with) {
  auto made = with_common(with.kafka, with);
  made.partitions = with.partitions;
  return made;
}

}  // namespace

bool is_broker_server(std::string_view url) { return is_rabbitmq(url) || is_kafka(url); }

void check_broker(const std::string& url) {
  if (is_broker_server(url)) {
    if (missing_broker_driver(url).empty()) broker_without_secrets(url);
  } else if (url.empty() || url.find("://") != std::string::npos || is_postgres(url)) {
    throw error(errc::invalid_argument,
                "a broker is a file or a URL, amqp://…, amqps://…, kafka://… or kafkas://…; this is neither");
  }
}

std::string missing_broker_driver(std::string_view url) {
  if (is_kafka(url)) return missing_kafka();
  return is_rabbitmq(url) ? missing_rabbitmq() : std::string();
}

std::string broker_without_secrets(const std::string& url) {
  if (is_kafka(url)) return kafka_without_secrets(url);
  return is_rabbitmq(url) ? rabbitmq_without_secrets(url) : url;
}

bool is_broker_file(database& db) { return db.speaks() == dialect::sqlite && sqlite::is_broker_file(db); }

std::unique_ptr<broker_view> look_into_broker(std::unique_ptr<database> file) {
  return std::make_unique<embedded_view>(std::move(file), broker_options{}.bytes_max);
}

std::unique_ptr<broker_view> look_into_broker(const std::string& url, const broker_options& with) {
  if (is_broker_server(url)) return std::make_unique<server_view>(open_broker(url, with), with.env);
  return std::make_unique<embedded_view>(open_broker_file(url, with), with.bytes_max);
}

std::unique_ptr<broker> open_broker(const std::string& url, const broker_options& with) {
  if (is_kafka(url)) return open_kafka(url, kafka_options(with));
  if (is_rabbitmq(url)) return open_rabbitmq(url, with_common(with.rabbitmq, with));
  sqlite::broker_options options;
  options.env = with.env;
  options.busy_timeout = with.busy_timeout;
  options.partitions = with.partitions;
  options.lease_ttl = with.lease_ttl;
  options.keep = with.keep;
  options.bytes_max = with.bytes_max;
  return sqlite::open_broker(url, options);
}

std::unique_ptr<database> open_broker_file(const std::string& path, const broker_options& with) {
  return sqlite::open(path, {.env = with.env, .busy_timeout = with.busy_timeout});
}

std::span<const sql::migration> broker_migrations() { return migrations::sqlite_broker; }

}  // namespace settle::compose
