// settle migrate: creates or updates the service's database and the broker's file.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/text.hpp"
#include "compose/service_database.hpp"
#include "queries/migrations_sqlite_broker.hpp"
#include "sql/migrations.hpp"

namespace settle::cli {
namespace {

namespace fs = std::filesystem;

struct outcome {
  std::string_view role;
  std::string name;
  bool created = false;
  int applied = 0;  // migrations, now
  int version = 0;  // of the schema, afterwards
};

// Events hold business data: only the owner may look into a folder that we make.
void make_folder(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return;
  if (fs::exists(path, failed))
    throw failure(errc::invalid_argument, fmt::format("{} is a file; --data takes a folder", path));
  const auto parent = fs::path(path).lexically_normal().parent_path();
  if (!parent.empty()) fs::create_directories(parent, failed);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw failure(errc::store_unavailable,
                  fmt::format("cannot create the folder {}: {}", path, std::strerror(errno)));
}

outcome bring_up_to_date(const std::string& path, file_kind kind) {
  const bool service = kind == file_kind::service;
  std::error_code unreadable;
  const bool is_new = !compose::is_postgres(path) && !fs::exists(path, unreadable);
  const auto db = compose::open_database(path);
  outcome done{service ? "service" : "broker", db->name()};
  const bool was_there = is_kind(*db, kind);  // refuses a broker as a service, before its tables are touched
  done.created = compose::is_postgres(path) ? !was_there : is_new;
  const auto all = service ? sql::service_migrations(db->speaks())
                           : std::span<const sql::migration>(migrations::sqlite_broker);
  done.applied = sql::apply_migrations(*db, all);
  done.version = static_cast<int>(all.size());
  return done;
}

std::string described(const outcome& what) {
  if (what.created && what.applied > 0) return fmt::format("created, schema version {}", what.version);
  if (what.applied == 0) return fmt::format("up to date, schema version {}", what.version);
  return fmt::format("{} applied, schema version {}", counted(what.applied, "migration"), what.version);
}

void print(const std::vector<outcome>& done, bool json) {
  if (!json) {
    for (const auto& one : done)
      fmt::print("{:<8} {}: {}\n", one.role, for_terminal(one.name), described(one));
    return;
  }
  boost::json::object all;
  for (const auto& one : done)
    all[one.role] = {{"file", safe_json_text(one.name)},
                     {"created", one.created},
                     {"migrations_applied", one.applied},
                     {"schema_version", one.version}};
  fmt::print("{}\n", boost::json::serialize(all));
}

int migrate_both(const context& shared) {
  require_distinct(shared.service_path(), shared.broker_path());
  if (shared.database.empty() || shared.broker.empty()) make_folder(shared.data);
  std::vector<outcome> done;
  done.push_back(bring_up_to_date(shared.service_path(), file_kind::service));
  done.push_back(bring_up_to_date(shared.broker_path(), file_kind::broker));
  print(done, shared.json);
  return exit_ok;
}

}  // namespace

void add_migrate(CLI::App& to, context& shared) {
  auto* command = to.add_subcommand("migrate",
                                    "Create or update the service's database and the broker's file.\n"
                                    "Safe to repeat, and from any number of processes at once.");
  describe_command(*command,
                   "  settle migrate\n"
                   "  settle migrate --database shop.db      add Settle's tables to your own database\n"
                   "  settle migrate --database 'host=db.internal dbname=shop user=shop'");
  command->callback([&shared] { shared.run = [&shared] { return migrate_both(shared); }; });
}

}  // namespace settle::cli
