// settle status: where everything stands, without changing or delaying anything.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/status_report.hpp"
#include "cli/syntax.hpp"
#include "inspect/services.hpp"

namespace settle::cli {
namespace {

// The broker first: an event that moves on in between is then counted as published and not yet as a
// message, which looks like work under way; the other order would show one that nobody has committed.
int show_one(const context& shared) {
  const auto service = open_existing(shared.service_path(), file_kind::service);
  const auto broker = open_broker_view(shared.broker_path(), shared.broker_options());
  const auto at_broker = inspect::read_broker(broker->inspection());
  const auto in_service = inspect::read_service(*service);
  fmt::print("{}", shared.json ? status_json(in_service, at_broker)
                               : with_given(status_text(in_service, at_broker), shared.given));
  return exit_ok;
}

// How long a store may take to answer where all are asked.
constexpr duration answer_within = std::chrono::seconds(2);

// So that a question to a server that hangs ends by itself, if not in time.
compose::database_options impatient() {
  return {
      .busy_timeout = answer_within, .connect_timeout = answer_within, .statement_timeout = answer_within};
}

// What the command line knows about a store that is not as it should be, as the library says it.
template <class Read>
auto in_words_of_the_library(const Read& read) try {
  return read();
} catch (const failure& e) {
  throw error(e.code(), e.what());
}

// As its errors name it; nothing is asked, and nothing created.
std::string store_name(const std::string& where) try {
  return compose::is_postgres(where) ? compose::open_database(where)->name() : where;
} catch (const error&) {
  return compose::without_secrets(where);
}

inspect::service_source source_of(const config::service_settings& of) {
  return {of.name, [where = of.database] {
            return in_words_of_the_library([&] {
              return inspect::read_service(*open_existing(where, file_kind::service, impatient()));
            });
          }};
}

inspect::broker_source source_of(const config::broker_settings& of) {
  return {of.name, [where = of.url, with = of.options] {
            return in_words_of_the_library([&] {
              const auto view = open_broker_view(where, with, impatient());
              return inspect::read_broker(view->inspection());
            });
          }};
}

// A service through which a broker is reached.
std::string service_at(const config::configuration& file, const std::string& broker) {
  const auto found = std::ranges::find(file.services, broker, &config::service_settings::broker);
  return found == file.services.end() ? std::string() : found->name;
}

int show_all(context& shared) {
  const auto& file = *shared.file();
  status_of_all all;
  std::vector<inspect::service_source> services;
  std::vector<inspect::broker_source> brokers;
  for (const auto& one : file.services) {
    all.services.push_back({one.name, store_name(one.database), given_for(shared, one.name)});
    services.push_back(source_of(one));
  }
  for (const auto& one : file.brokers) {
    all.brokers.push_back({one.name.empty() ? "broker" : one.name, compose::broker_without_secrets(one.url),
                           given_for(shared, service_at(file, one.name))});
    brokers.push_back(source_of(one));
  }
  const auto inquiry = std::make_shared<inspect::services_inquiry>(std::move(services), std::move(brokers));
  shared.unanswered = inquiry;
  all.told = inquiry->ask(answer_within);
  if (!inquiry->is_waiting()) shared.unanswered.reset();
  fmt::print("{}", shared.json ? status_json(all) : status_text(all));
  return all.told.complete() ? exit_ok : exit_retry;
}

int show_status(context& shared) { return shared.means_all_services() ? show_all(shared) : show_one(shared); }

}  // namespace

void add_status(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("status",
                        "Show outbox, relays, topics, groups and their lag.\n"
                        "Reads only; safe while other processes write. With --config and no\n"
                        "--service all services at a glance; a store that does not answer\n"
                        "within 2 seconds is unknown, and the exit code 3.");
  describe_command(command,
                   "  settle status\n"
                   "  settle status --json | jq .service.outbox.pending\n"
                   "  settle status --config settled.toml\n"
                   "  settle status --config settled.toml --service orders");
  command.callback([&shared] { shared.run = [&shared] { return show_status(shared); }; });
}

}  // namespace settle::cli
