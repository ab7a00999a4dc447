// The command line: parses the arguments, runs one command, turns failures into exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/usage.hpp"
#include "compose/service_broker.hpp"

namespace settle::cli {

namespace {

void add_global_options(CLI::App& program, context& shared) {
  program
      .add_option("--data", shared.data,
                  "Folder of settle.db (the service) and broker.db.\nDefault: $SETTLE_DATA, else settle-data")
      ->envname("SETTLE_DATA")
      ->option_text("DIR");
  program
      .add_option("--database", shared.database,
                  "The service's database, instead of DIR/settle.db: a file, or a PostgreSQL as\n"
                  "postgresql://… or in libpq's keywords, 'host=… dbname=… user=…'. A text that begins\n"
                  "with a lower-case word and = is taken for the latter; write ./a=b.db for a file.\n"
                  "Passwords are better in ~/.pgpass or PGPASSWORD. Default: $SETTLE_DATABASE")
      ->envname("SETTLE_DATABASE")
      ->option_text("DB");
  program
      .add_option("--broker", shared.broker,
                  "The broker, instead of DIR/broker.db: the file of an embedded one, a RabbitMQ as\n"
                  "amqp://… or amqps://…, or a Kafka as kafka://… or kafkas://…. Passwords are better in\n"
                  "a file: see --config")
      ->option_text("FILE");
  program
      .add_option("--config", shared.config,
                  "The daemon's file, which names services and brokers: instead of --database and\n"
                  "--broker. Default: $SETTLE_CONFIG, else none")
      ->envname("SETTLE_CONFIG")
      ->option_text("FILE");
  program
      .add_option("--service", shared.service,
                  "The service of that file which is meant. Default: $SETTLE_SERVICE, else the only\n"
                  "one there is; doctor, migrate, status and verify: all of them")
      ->envname("SETTLE_SERVICE")
      ->option_text("NAME");
  program.add_flag("--json", shared.json, "Print JSON for machines; errors too")->option_text(" ");
  program.set_version_flag("--version", "settle " SETTLE_VERSION, "Print the version and exit");
}

// When the arguments do not parse, the flag's variable may not be set yet.
bool asks_for_json(std::span<char* const> arguments) {
  for (const std::string_view one : arguments)
    if (one == "--json") return true;
  return false;
}

// Notes which options were given, as somebody who did not use the environment would have to type them. Stores
// that are named here win over a file that the environment names.
void note_given(const CLI::App& program, context& shared) {
  shared.data_given = is_typed(program, "--data", "SETTLE_DATA", shared.data);
  const bool by_database =
      is_typed(program, "--database", "SETTLE_DATABASE", shared.database) && !shared.database.empty();
  const bool by_broker = is_typed(program, "--broker", nullptr, shared.broker);
  const bool by_file = is_typed(program, "--config", "SETTLE_CONFIG", shared.config);
  const bool by_name = is_typed(program, "--service", "SETTLE_SERVICE", shared.service);
  if ((by_database || by_broker) && (by_file || by_name)) {
    shared.conflict =
        fmt::format("{} and {} both name the stores; leave out one of them",
                    by_file ? "--config" : "--service", by_database ? "--database" : "--broker");
  } else if (by_database || by_broker) {
    shared.config.clear();
    shared.service.clear();
  }
  auto& all = shared.given;
  if (by_file) all += argument_text("--config", shared.config);
  if (by_name) all += argument_text("--service", shared.service);
  if (shared.data_given) all += argument_text("--data", shared.data);
  if (by_database) all += argument_text("--database", compose::without_secrets(shared.database));
  if (by_broker) all += argument_text("--broker", compose::broker_without_secrets(shared.broker));
}

int run(context& shared) try {
  if (shared.data.empty()) throw failure(errc::invalid_argument, "--data is empty");
  return shared.run();
} catch (const failure& e) {
  return report(e, {shared.json, shared.done, shared.given});
} catch (const error& e) {
  return report(e, {shared.json, shared.done, shared.given});
} catch (const std::exception& e) {
  if (std::ferror(stdout) != 0) throw;
  return report_unexpected(e.what(), {shared.json, shared.done, shared.given});
}

// A full disk behind a redirection must not look like success, and what was done not like a failure.
int finish(int code, const context& shared) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  const int error = errno;
  if (code != exit_ok && code != exit_found) return code;  // that was told on standard error
  const int untold = report_output_failed(std::strerror(error), {shared.json, shared.done, shared.given});
  return untold == exit_untold && code == exit_found ? exit_found : untold;
}

int run_and_finish(context& shared) try {
  return finish(run(shared), shared);
} catch (const std::exception& e) {  // of a print, before the end
  return report_output_failed(e.what(), {shared.json, shared.done, shared.given});
}

int parse_and_run(int argc, char** argv) {
  context shared;
  CLI::App program;
  describe_program(program);
  add_global_options(program, shared);
  program.fallthrough();
  program.require_subcommand(1);
  const command_syntax commands(program);
  add_backup(commands, shared);
  add_dlq(commands, shared);
  add_doctor(commands, shared);
  add_group(commands, shared);
  add_help(commands, shared);
  add_keys(commands, shared);
  add_lock(commands, shared);
  add_migrate(commands, shared);
  add_outbox(commands, shared);
  add_publish(commands, shared);
  add_relay(commands, shared);
  add_restore(commands, shared);
  add_saga(commands, shared);
  add_serve(commands, shared);
  add_status(commands, shared);
  add_tail(commands, shared);
  add_verify(commands, shared);
  add_webhook(commands, shared);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help or --version
    return finish(program.exit(asked), {});
  } catch (const CLI::ParseError& e) {
    const bool json = asks_for_json({argv, static_cast<std::size_t>(argc)});
    return report_usage(why_refused(program, e), json);
  }
  note_given(program, shared);
  const int code = run_and_finish(shared);
  // A store that has not answered may never do so, and its thread cannot be stopped. So nothing that the
  // thread uses is destroyed, here or by those who clean up at the end of a process; all output is written.
  if (shared.unanswered) std::quick_exit(code);
  return code;
}

}  // namespace
}  // namespace settle::cli

int main(int argc, char** argv) { return settle::cli::parse_and_run(argc, argv); }
