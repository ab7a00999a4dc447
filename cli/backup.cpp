// settle backup and settle restore: copies of a running system, and a system from copies.
#include "compose/backup.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr auto service_copy = "settle.db";
constexpr auto broker_copy = "broker.db";

struct backup_arguments {
  std::string folder;
};

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw failure(errc::store_unavailable,
                  fmt::format("cannot create the folder {}: {}", path, std::strerror(errno)));
}

void make_fresh_folder(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_empty(path, ignored))
    throw failure(errc::invalid_argument, fmt::format("{} is not empty; name a new folder", path));
  make_folder(path);
}

void refuse_server(const context& shared) {
  if (!shared.on_postgres()) return;
  throw failure(
      errc::invalid_argument,
      "backup and restore are for files; on PostgreSQL use pg_dump, pg_basebackup or what else your "
      "server is backed up with. After a restore into another cluster or to a point in time run "
      "`settle outbox rebase`, so that relays go on (docs/errors/cluster_changed.md)");
}

int backup(context& shared, const backup_arguments& wanted) {
  refuse_server(shared);
  require_ready(shared.service_path(), file_kind::service);
  require_ready(shared.broker_path(), file_kind::broker);
  make_fresh_folder(wanted.folder);
  const auto broker = wanted.folder + "/" + broker_copy;
  const auto service = wanted.folder + "/" + service_copy;
  compose::copy_online(shared.broker_path(), broker);  // before the service: see copy_online()
  compose::copy_online(shared.service_path(), service);
  shared.note_done(fmt::format("{} and {} were written", service, broker));
  if (shared.json)
    fmt::print("{}\n", json::serialize(json::object{{"service", safe_json_text(service)},
                                                    {"broker", safe_json_text(broker)}}));
  else
    fmt::print("service  {}: {} bytes\nbroker   {}: {} bytes\n", for_terminal(service),
               grouped(static_cast<std::int64_t>(fs::file_size(service))), for_terminal(broker),
               grouped(static_cast<std::int64_t>(fs::file_size(broker))));
  return exit_ok;
}

// The name of a copy under way; what an earlier, killed restore left there is removed.
std::string fresh_part(const std::string& target) {
  const auto part = target + ".restoring";
  for (const auto* beside : {"", "-wal", "-shm", "-queue", "-journal"}) fs::remove(part + beside);
  return part;
}

int restore(context& shared, const backup_arguments& wanted) {
  refuse_server(shared);
  const auto broker = wanted.folder + "/" + broker_copy;
  const auto service = wanted.folder + "/" + service_copy;
  require_ready(service, file_kind::service);
  require_ready(broker, file_kind::broker);
  for (const auto& target : {shared.service_path(), shared.broker_path()})
    if (fs::exists(target))
      throw failure(errc::invalid_argument,
                    fmt::format("{} exists; stop everything that uses it and move it away first", target));
  if (shared.uses_data_folder()) make_folder(shared.data_folder());
  // Under other names until both are ready: a restore that is killed can simply be repeated.
  const auto broker_part = fresh_part(shared.broker_path());
  const auto service_part = fresh_part(shared.service_path());
  compose::copy_online(broker, broker_part);
  compose::copy_online(service, service_part);
  compose::prepare_restored_broker(broker_part);
  const auto generation = compose::prepare_restored_service(service_part);
  compose::put_in_place(broker_part, shared.broker_path());
  compose::put_in_place(service_part, shared.service_path());
  shared.note_done(fmt::format("{} and {} were restored", shared.service_path(), shared.broker_path()));
  if (shared.json)
    fmt::print("{}\n", json::serialize(json::object{{"service", safe_json_text(shared.service_path())},
                                                    {"broker", safe_json_text(shared.broker_path())},
                                                    {"generation", generation}}));
  else
    fmt::print(
        "service  {}: restored, generation {}\nbroker   {}: restored\n"
        "Relays will publish again what the outbox holds; consumers skip what they have applied.\n",
        for_terminal(shared.service_path()), generation, for_terminal(shared.broker_path()));
  return exit_ok;
}

using action = int (*)(context&, const backup_arguments&);

void add(command_syntax command, context& shared, const char* what, const char* examples, action run) {
  const auto wanted = std::make_shared<backup_arguments>();
  command.add_option("FOLDER", wanted->folder, what).required();
  describe_command(command, examples);
  command.callback(
      [&shared, wanted, run] { shared.run = [&shared, wanted, run] { return run(shared, *wanted); }; });
}

}  // namespace

void add_backup(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("backup",
                        "Copy the service's database and the broker's file while they are in use.\n"
                        "The copies are consistent with each other: see `settle restore`.\n"
                        "For files; PostgreSQL has its own tools, pg_dump among them.");
  add(command, shared, "A new or empty folder for the copies", "  settle backup /backups/monday", backup);
}

void add_restore(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("restore",
                                         "Make the files of --data from a backup. They must not exist yet.\n"
                                         "Nothing that the backup holds is lost; what came after it is.");
  add(command, shared, "The folder that `settle backup` wrote",
      "  settle restore /backups/monday --data settle-data", restore);
}

}  // namespace settle::cli
