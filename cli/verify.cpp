// settle verify: was anything lost, doubled, invented or reordered?
#include "settle/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/syntax.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "inspect/service.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

struct verify_arguments {
  std::vector<std::string> services;
  std::int64_t examples = 10;
};

// A database that is named twice would count every effect twice and accuse an innocent system. Servers have
// many names, so they are asked who they are.
bool same_database(database& left, database& right) {
  if (left.speaks() != right.speaks()) return false;
  if (left.speaks() == dialect::sqlite) return same_file(left.name(), right.name());
  return inspect::read_database_id(left) == inspect::read_database_id(right);
}

std::vector<std::unique_ptr<database>> open_services(const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<database>> unique;
  for (const auto& path : paths) {
    auto one = open_existing(path, file_kind::service);
    if (std::ranges::none_of(unique, [&](const auto& known) { return same_database(*known, *one); }))
      unique.push_back(std::move(one));
  }
  return unique;
}

std::string checked_text(const verify_input& input) {
  std::string out;
  for (const auto* db : input.services) out += fmt::format("Service  {}\n", for_terminal(db->name()));
  return out + fmt::format("Broker   {}\n", for_terminal(input.broker->name()));
}

std::string numbers_text(const verify_report& of) {
  std::vector<std::vector<std::string>> rows{
      {"committed", grouped(of.committed),
       of.from_records ? "events in the outboxes" : "causes in the effect logs"},
      {"published", grouped(of.published), "of them at the broker"},
      {"expected", grouped(of.expected), "effects: causes times the consumers of their topic"},
      {"applied", grouped(of.applied),
       of.from_records ? "recorded by their consumers" : "effects that happened"},
      {"pending", grouped(of.pending), "still on their way, or waiting for another try"},
      {"given up", grouped(of.given_up), "dead letters: see `settle dlq list`"},
      {"lost", grouped(of.lost), "neither applied nor on their way"},
      {"doubled", grouped(of.doubled), "applied more than once"},
      {"ghosts", grouped(of.ghosts), "applied, but never committed"},
      {"reordered", grouped(of.reordered), "applied before an earlier one of their key"},
  };
  if (of.failed > 0)
    rows.insert(rows.end() - 4,
                {"failed", grouped(of.failed), "rejected events: see `settle outbox failed`"});
  return table({align::left, align::right, align::left}, rows, 2);
}

std::string findings_text(const verify_report& of) {
  std::string out;
  for (const auto& one : of.findings)
    out += fmt::format("  {}: {}{}: {}\n", one.kind, for_terminal(one.subject),
                       one.consumer.empty() ? "" : " by " + for_terminal(one.consumer),
                       for_terminal(one.detail));
  for (const auto& one : of.not_judged) out += fmt::format("  not judged: {}\n", for_terminal(one));
  return out;
}

std::string verdict(const verify_report& of) {
  if (!of.clean()) return "FOUND: the promise is broken, see above.";
  if (of.committed == 0 && of.applied == 0) return "NOTHING TO JUDGE: the databases hold no events.";
  if (of.failed > 0)
    return fmt::format(
        "CLEAN{}: nothing lost; but events that the broker rejects were given up: see `settle outbox "
        "failed`.",
        of.from_records ? " as far as records tell" : "");
  if (of.from_records)
    return "CLEAN as far as outbox, broker and deduplication records tell; there is no effect log.";
  if (!of.not_judged.empty())
    return "CLEAN as far as could be judged: nothing else is lost, doubled, invented or reordered; see "
           "above.";
  if (of.pending > 0)
    return "CLEAN so far: nothing lost, nothing doubled; some effects are still on their way.";
  if (of.given_up > 0)
    return "CLEAN: nothing lost, nothing doubled; what was given up waits as dead letters.";
  return "CLEAN: nothing lost, nothing doubled, nothing invented, order kept.";
}

// The one line that people quote; what is zero in a good run is named only when it is not.
std::string last_line(const verify_report& of) {
  auto line = fmt::format("{} committed, {} applied, {} lost, {} doubled", grouped(of.committed),
                          grouped(of.applied), grouped(of.lost), grouped(of.doubled));
  if (of.ghosts > 0) line += fmt::format(", {}", counted(of.ghosts, "ghost"));
  if (of.reordered > 0) line += fmt::format(", {} reordered", grouped(of.reordered));
  if (of.pending > 0) line += fmt::format(", {} pending", grouped(of.pending));
  if (of.given_up > 0) line += fmt::format(", {} given up", grouped(of.given_up));
  if (of.failed > 0) line += fmt::format(", {} failed", grouped(of.failed));
  return line;
}

std::string report_text(const verify_report& of) {
  const auto findings = findings_text(of);
  return numbers_text(of) + (findings.empty() ? "" : "\n" + findings) + "\n" + verdict(of) + "\n" +
         last_line(of) + "\n";
}

std::string report_json(const verify_report& of) {
  json::array consumers, findings, not_judged;
  for (const auto& one : of.consumers) consumers.emplace_back(safe_json_text(one));
  for (const auto& one : of.findings)
    findings.push_back({{"kind", one.kind},
                        {"consumer", safe_json_text(one.consumer)},
                        {"subject", safe_json_text(one.subject)},
                        {"detail", safe_json_text(one.detail)}});
  for (const auto& one : of.not_judged) not_judged.emplace_back(one);
  return json::serialize(json::object{{"clean", of.clean()},
                                      {"from_records", of.from_records},
                                      {"committed", of.committed},
                                      {"published", of.published},
                                      {"expected", of.expected},
                                      {"applied", of.applied},
                                      {"pending", of.pending},
                                      {"given_up", of.given_up},
                                      {"failed", of.failed},
                                      {"lost", of.lost},
                                      {"doubled", of.doubled},
                                      {"ghosts", of.ghosts},
                                      {"reordered", of.reordered},
                                      {"consumers", consumers},
                                      {"findings", findings},
                                      {"not_judged", not_judged}}) +
         "\n";
}

struct verified_stores {
  std::vector<std::string> services;
  std::string broker;
  compose::broker_options with;
  std::string given;  // for commands about them
};

// Of the daemon's file: those that are named, or all of them.
verified_stores stores_of_file(const context& shared, std::vector<std::string> names) {
  if (names.empty() && !shared.means_all_services()) names.push_back(shared.chosen_service()->name);
  if (names.empty())
    for (const auto& one : shared.file()->services) names.push_back(one.name);
  const auto& first = shared.service_named(names.front());
  verified_stores found;
  for (const auto& name : names) {
    const auto& one = shared.service_named(name);
    if (one.broker != first.broker)
      throw failure(
          errc::invalid_argument,
          fmt::format("{} and {} have different brokers, {} and {}; name services of one broker with "
                      "--service",
                      first.name, one.name, first.broker, one.broker));
    found.services.push_back(one.database);
  }
  const auto& broker = *shared.file()->find_broker(first.broker);
  found.broker = broker.url;
  found.with = broker.options;
  found.given = names.size() == 1 && shared.service.empty() ? given_for(shared, first.name) : shared.given;
  return found;
}

verified_stores stores_of(const context& shared, const std::vector<std::string>& named) {
  if (shared.file() != nullptr) return stores_of_file(shared, named);
  if (named.empty()) return {{shared.service_path()}, shared.broker_path(), {}, shared.given};
  return {named, shared.broker_path(), {}, ""};
}

int verify_command(const context& shared, const verify_arguments& wanted) {
  const auto stores = stores_of(shared, wanted.services);
  const auto services = open_services(stores.services);
  verify_input input;
  for (const auto& one : services) input.services.push_back(one.get());
  const auto broker = open_broker_view(stores.broker, stores.with);
  input.broker = &broker->inspection();
  input.examples_max = static_cast<std::size_t>(wanted.examples);
  const auto report = verify(input);
  if (shared.json)
    fmt::print("{}", report_json(report));
  else
    fmt::print("{}\n{}", checked_text(input), with_given(report_text(report), stores.given));
  return report.clean() ? exit_ok : exit_found;
}

}  // namespace

void add_verify(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "verify",
      "Check the effect logs: was anything lost, doubled, invented or reordered?\n"
      "Exit code 1 if so. The log is written by programs, with note_committed() and note_applied().");
  const auto wanted = std::make_shared<verify_arguments>();
  command
      .add_option("--service", wanted->services,
                  "A database with an outbox or an effect log; may be repeated. With --config the\n"
                  "name of a service. Default: the one of --data or --database, or all of the file")
      .option_text("DB")
      .one_value_each();
  command
      .add_option("--examples", wanted->examples,
                  "How many findings of each kind to name, 0 to 10,000. Default: 10")
      .option_text("N")
      .between(0, 10'000);
  describe_command(command,
                   "  settle verify\n"
                   "  settle verify --service orders.db --service warehouse.db --broker broker.db\n"
                   "  settle verify --config settled.toml --service orders --service warehouse");
  command.callback(
      [&shared, wanted] { shared.run = [&shared, wanted] { return verify_command(shared, *wanted); }; });
}

}  // namespace settle::cli
