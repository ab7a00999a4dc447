#include "sqlite/database.hpp"

#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "sqlite/wal_watch.hpp"

namespace settle::inline v0::sqlite {

sqlite_database::sqlite_database(const std::string& path, const options& opts)
    : database(opts.env),
      where_{path, opts.vfs},
      options_(opts),
      first_(open_handle(where_, static_cast<int>(opts.busy_timeout / std::chrono::milliseconds(1)))),
      queue_(opts.vfs.empty() ? path + "-queue" : std::string()),
      members_(opts.vfs.empty() ? path + "-members" : std::string()),
      checkpointer_(where_, opts.checkpoint_pages),
      pool_({path, opts.connections_max, opts.busy_timeout}, [this](const std::stop_token&) {
        return std::make_unique<sqlite_connection>(where_, queue_, checkpointer_, options_.busy_timeout,
                                                   env());
      }) {
  // Readers of a file that is ready do not queue behind its writers.
  const auto first = std::move(first_);
  if (in_wal_mode(first.get())) return;
  const auto turn = queue_.acquire(opts.busy_timeout, {});
  switch_to_wal(first.get());
}

std::unique_ptr<connection> sqlite_database::acquire(const std::stop_token& cancel) {
  return pool_.acquire(cancel);
}

void sqlite_database::release(std::unique_ptr<connection> idle) noexcept { pool_.release(std::move(idle)); }

std::unique_ptr<wakeup> sqlite_database::watch() {
  if (!where_.vfs.empty()) return std::make_unique<nothing_to_watch>();
  return std::make_unique<wal_watch>(where_.path, env());
}

std::unique_ptr<database> open(const std::string& path, const options& opts) {
  if (path.empty() || path == ":memory:" || path.starts_with("file:"))
    throw error(errc::invalid_argument, "a SQLite database needs the path of a file, got '" + path + "'");
  return std::make_unique<sqlite_database>(path, opts);
}

}  // namespace settle::inline v0::sqlite
