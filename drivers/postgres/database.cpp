#include "postgres/database.hpp"

#include "postgres/connection.hpp"
#include "postgres/listen_watch.hpp"
#include "settle/driver/database.hpp"

namespace settle::inline v0::postgres {

postgres_database::postgres_database(const std::string& conninfo, const options& opts)
    : database(opts.env),
      to_(read_conninfo(conninfo)),
      options_(opts),
      watchers_(std::make_shared<wake_list>()),
      hints_(to_, options_.env, *watchers_),
      members_(to_, options_),
      committed_([this] {
        watchers_->wake();
        hints_.give();
      }),
      pool_({to_.name, opts.connections_max, opts.busy_timeout}, [this](const std::stop_token& cancel) {
        return std::make_unique<postgres_connection>(to_, options_, committed_, cancel);
      }) {}

std::unique_ptr<connection> postgres_database::acquire(const std::stop_token& cancel) {
  return pool_.acquire(cancel);
}

void postgres_database::release(std::unique_ptr<connection> idle) noexcept { pool_.release(std::move(idle)); }

std::unique_ptr<wakeup> postgres_database::watch() {
  return std::make_unique<listen_watch>(to_, options_, watchers_);
}

std::unique_ptr<database> open(const std::string& conninfo, const options& opts) {
  return std::make_unique<postgres_database>(conninfo, opts);
}

}  // namespace settle::inline v0::postgres
