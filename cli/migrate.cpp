// settle migrate: creates or updates the service's database and the broker's file, or prints what it would
// run.
#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/each_service.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/syntax.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "doctor/doctor.hpp"
#include "sql/migration_script.hpp"
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
  std::optional<doctor::finding> lacks = {};
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
  const auto all = service ? sql::service_migrations(db->speaks()) : compose::broker_migrations();
  done.applied = sql::apply_migrations(*db, all);
  done.version = static_cast<int>(all.size());
  if (service) done.lacks = doctor::examine_publisher_role(*db);
  return done;
}

// On the other stream, so that what reads the answer of a migration that has worked is not disturbed.
void warn(const doctor::finding& about) {
  fmt::print(stderr, "warning: {}: {}\n", about.title, about.why);
  fmt::print(stderr,
             "  The migration could not mend that. To create a role takes CREATEROLE, to grant the owner:\n");
  std::istringstream fix(about.fix);
  for (std::string line; std::getline(fix, line);) fmt::print(stderr, "    {}\n", line);
}

std::string described(const outcome& what) {
  if (what.created && what.applied > 0) return fmt::format("created, schema version {}", what.version);
  if (what.applied == 0) return fmt::format("up to date, schema version {}", what.version);
  return fmt::format("{} applied, schema version {}", counted(what.applied, "migration"), what.version);
}

boost::json::object json_of(const outcome& what) {
  return {{"file", safe_json_text(what.name)},
          {"created", what.created},
          {"migrations_applied", what.applied},
          {"schema_version", what.version}};
}

boost::json::array warnings_in(const std::vector<outcome>& done) {
  boost::json::array warnings;
  for (const auto& one : done)
    if (one.lacks)
      warnings.push_back({{"code", one.lacks->code},
                          {"title", one.lacks->title},
                          {"why", one.lacks->why},
                          {"fix", one.lacks->fix}});
  return warnings;
}

void print(const std::vector<outcome>& done, bool json) {
  if (!json) {
    for (const auto& one : done)
      fmt::print("{:<8} {}: {}\n", one.role, for_terminal(one.name), described(one));
    std::fflush(stdout);
    for (const auto& one : done)
      if (one.lacks) warn(*one.lacks);
    return;
  }
  boost::json::object all;
  for (const auto& one : done) all[one.role] = json_of(one);
  all["warnings"] = warnings_in(done);
  fmt::print("{}\n", boost::json::serialize(all));
}

int migrate_both(context& shared) {
  require_distinct(shared.service_path(), shared.broker_path());
  if (shared.uses_data_folder()) make_folder(shared.data_folder());
  std::vector<outcome> done;
  std::string told;
  const auto bring = [&](const std::string& path, file_kind kind) {
    const auto& one = done.emplace_back(bring_up_to_date(path, kind));
    told += fmt::format("{}{} {}: {}", told.empty() ? "" : ", ", one.role, one.name, described(one));
    shared.note_done(told);
  };
  bring(shared.service_path(), file_kind::service);
  if (!compose::is_broker_server(shared.broker_path())) bring(shared.broker_path(), file_kind::broker);
  print(done, shared.json);
  return exit_ok;
}

// What happened to all that the daemon's file names.
struct named_outcomes {
  std::vector<std::string> names;  // of the rows below
  std::vector<outcome> done;
  failures_by_name failed;
};

void print(const named_outcomes& all, bool json) {
  if (!json) {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < all.done.size(); ++i)
      rows.push_back({std::string(all.done[i].role), all.names[i],
                      fmt::format("{}: {}", for_terminal(all.done[i].name), described(all.done[i]))});
    fmt::print("{}", table({align::left, align::left, align::left}, rows, 0));
    std::fflush(stdout);
    for (const auto& one : all.done)
      if (one.lacks) warn(*one.lacks);
    return;
  }
  boost::json::object services, brokers, errors;
  for (std::size_t i = 0; i < all.done.size(); ++i)
    (all.done[i].role == "service" ? services : brokers)[all.names[i]] = json_of(all.done[i]);
  for (const auto& one : all.failed.all())
    errors[one.name] = {{"code", to_string(one.code)}, {"message", safe_json_text(one.message)}};
  fmt::print("{}\n", boost::json::serialize(boost::json::object{{"services", services},
                                                                {"brokers", brokers},
                                                                {"errors", errors},
                                                                {"warnings", warnings_in(all.done)}}));
}

// One that cannot be had keeps no other from being brought up to date.
int migrate_all(context& shared) {
  const auto& file = *shared.file();
  named_outcomes all;
  const auto bring = [&](const std::string& name, const std::string& path, file_kind kind) {
    const auto role = kind == file_kind::service ? "service" : "broker";
    const auto label = name.empty() ? std::string(role) : fmt::format("{} {}", role, name);
    const bool worked = all.failed.attempt(label, [&] {
      if (is_file_in(path, file.data)) make_folder(file.data);
      all.done.push_back(bring_up_to_date(path, kind));
    });
    if (!worked) return;
    all.names.push_back(name);
    shared.note_done(
        fmt::format("{} migrated", counted(static_cast<std::int64_t>(all.done.size()), "store")));
  };
  for (const auto& one : file.services) bring(one.name, one.database, file_kind::service);
  for (const auto& one : file.brokers)
    if (!compose::is_broker_server(one.url)) bring(one.name, one.url, file_kind::broker);
  print(all, shared.json);
  all.failed.throw_if_any();
  return exit_ok;
}

struct script {
  dialect of = dialect::sqlite;
  int applied = 0;
};

script script_for_database(const context& shared) {
  std::error_code unreadable;
  const bool is_file = !shared.on_postgres();
  if (is_file && (!fs::exists(shared.service_path(), unreadable) || !is_in_wal_mode(shared.service_path())))
    return {dialect::sqlite, 0};
  const auto db = compose::open_database(shared.service_path());
  is_kind(*db, file_kind::service);
  return {db->speaks(), sql::read_migration_state(*db, sql::service_migrations(db->speaks())).applied};
}

int print_script(const context& shared, const std::string& chosen) {
  const auto what = chosen.empty()       ? script_for_database(shared)
                    : chosen == "sqlite" ? script{dialect::sqlite, 0}
                                         : script{dialect::postgres, 0};
  const auto all = sql::service_migrations(what.of);
  const auto text = sql::migration_script(what.of, all, what.applied);
  if (shared.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{
                           {"dialect", what.of == dialect::postgres ? "postgres" : "sqlite"},
                           {"schema_version", what.applied},
                           {"schema_version_after", all.size()},
                           {"script", text}}));
  else
    fmt::print("{}",
               text.empty() ? "-- Nothing to do: the database has all of Settle's migrations.\n" : text);
  return exit_ok;
}

struct migrate_arguments {
  bool print = false;
  std::string dialect;
};

int migrate_command(context& shared, const migrate_arguments& wanted) {
  if (wanted.print) return print_script(shared, wanted.dialect);
  return shared.means_all_services() ? migrate_all(shared) : migrate_both(shared);
}

}  // namespace

void add_migrate(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("migrate",
                        "Create or update the service's database and the broker's file.\n"
                        "Safe to repeat, and from any number of processes at once. With --config\n"
                        "and no --service all services and brokers of the file; those that fail\n"
                        "are named at the end.");
  const auto wanted = std::make_shared<migrate_arguments>();
  const auto print =
      command
          .add_flag("--print", wanted->print,
                    "Change nothing; print what the service's database lacks, as a script for\n"
                    "psql or sqlite3. After it `settle migrate` finds nothing to do there")
          .option_text(" ");
  command
      .add_option("--dialect", wanted->dialect,
                  "With --print: everything, for a new database of this kind, without\nlooking at one")
      .option_text("postgres|sqlite")
      .one_of({"postgres", "sqlite"})
      .needs(print);
  describe_command(command,
                   "  settle migrate\n"
                   "  settle migrate --database shop.db      add Settle's tables to your own database\n"
                   "  settle migrate --database 'host=db.internal dbname=shop user=shop'\n"
                   "  settle migrate --config settled.toml   all services and brokers of the file\n"
                   "  settle migrate --print --dialect postgres > settle.sql");
  command.callback(
      [&shared, wanted] { shared.run = [&shared, wanted] { return migrate_command(shared, *wanted); }; });
}

}  // namespace settle::cli
