// settle saga signal: an event that sagas wait for, delivered by hand.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/payload.hpp"
#include "cli/saga_find.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"
#include "inspect/sagas.hpp"
#include "saga/mailbox.hpp"
#include "settle/event.hpp"
#include "settle/publish.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t words_bytes_max = 1000;

struct signal_arguments {
  std::string host, type, key, payload, reason, who, id;
};

// Events are kept per host; one that was never there would keep them for nobody.
std::string host_of(database& db, const std::string& asked) {
  const auto all = inspect::saga_hosts(db);
  if (all.empty())
    throw failure(errc::invalid_argument, fmt::format("no host has run sagas in {}", db.name()));
  if (asked.empty() && all.size() == 1) return all.front();
  if (std::ranges::find(all, asked) != all.end()) return asked;
  std::string names;
  for (const auto& one : all) names += (names.empty() ? "" : ", ") + for_terminal(one);
  throw failure(errc::invalid_argument, asked.empty() ? fmt::format("say whose sagas with --host: {}", names)
                                                      : fmt::format("there is no host {}; there are: {}",
                                                                    for_terminal(asked), names));
}

std::string unique_part(const std::string& given) {
  if (given.empty()) return environment{}.ids->next().text();
  const auto parsed = uuid::parse(given);
  if (!parsed)
    throw failure(
        errc::invalid_argument,
        fmt::format("--id takes a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057, not '{}'", given));
  return parsed->text();
}

// The event, and in the same transaction a record of who has given it and why, for whoever reads the topic of
// sagas that need a person.
bool deliver(database& db, const signal_arguments& of, const sagas::arrived_event& what) {
  auto tx = db.begin();
  if (sagas::mailbox(of.host).deliver(tx, {&what, 1}) == 0) return false;
  publish(tx, event{.topic = "settle.sagas",
                    .type = "saga.signalled",
                    .key = of.key,
                    .payload = to_json({{"host", of.host},
                                        {"type", of.type},
                                        {"key", of.key},
                                        {"event", what.id},
                                        {"who", of.who},
                                        {"reason", of.reason}})});
  tx.wake_on_commit();
  tx.commit("saga.signal");
  return true;
}

void tell(const context& shared, const signal_arguments& of, bool fresh,
          const std::optional<inspect::delivered_event>& found) {
  const auto given_to = found ? found->saga : std::nullopt;
  if (shared.json) {
    fmt::print("{}\n", json::serialize(
                           json::object{{"delivered", fresh},
                                        {"host", safe_json_text(of.host)},
                                        {"type", safe_json_text(of.type)},
                                        {"key", safe_json_text(of.key)},
                                        {"saga", given_to ? json::value(given_to->text()) : json::value()}}));
    return;
  }
  const auto what = fmt::format("{} of {}", for_terminal(of.type), for_terminal(of.key));
  const auto before = fresh ? "" : "it was delivered before; ";
  if (given_to)
    fmt::print("{}: {}{}\n", what, before,
               with_given(fmt::format("given to the saga of {}: `settle saga show {}`",
                                      for_terminal(found->entity), given_to->text()),
                          shared.given));
  else
    fmt::print("{}: {}kept; no saga of {} waits for it yet\n", what, before, for_terminal(of.host));
}

int signal(context& shared, signal_arguments of) {
  require_reason(of.reason, "is recorded with the event");
  of.who = operator_name(of.who);
  check_name(of.type, {"event type", event_limits::name_bytes_max});
  check_name(of.key, {"key", event_limits::key_bytes_max});
  check_name(of.who, {"name of the operator", words_bytes_max});
  check_name(of.reason, {"reason", words_bytes_max});
  const auto payload = payload_from(of.payload);
  const auto db = open_existing(shared.service_path(), file_kind::service);
  of.host = host_of(*db, of.host);
  const auto unique = unique_part(of.id);
  const sagas::arrived_event what{of.type, of.key, inspect::id_by_hand(unique, of.who, of.reason), payload};
  bool fresh = false;
  try {
    fresh = deliver(*db, of, what);
  } catch (const error& e) {
    if (!e.outcome_unknown()) throw;
    throw error::with_unknown_outcome(
        e.code(), fmt::format("signal again with --id {} and the same words, and it is delivered once: {}",
                              unique, e.what()));
  }
  shared.note_done(fmt::format("the event {} of {} was delivered", of.type, of.key));
  tell(shared, of, fresh, inspect::find_delivered(*db, of.host, what.id));
  return exit_ok;
}

}  // namespace

void add_saga_signal(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "signal",
      "Deliver by hand an event that sagas wait for. It goes to the saga that has waited for\n"
      "this type and key for longest; if none does, it is kept. Who and why is recorded.");
  const auto of = std::make_shared<signal_arguments>();
  command.add_option("--type", of->type, "The event's type, as `settle saga show` names it")
      .option_text("TYPE")
      .required();
  command.add_option("--key", of->key, "Its key, likewise").option_text("KEY").required();
  command
      .add_option("--payload", of->payload,
                  "Its content, in the form that the saga's program reads. @FILE reads it from a file, @-\n"
                  "from standard input; one that begins with @ is written @@… Default: empty")
      .option_text("TEXT");
  command.add_option("--reason", of->reason, "Why, in your words: at most 1,000 bytes").option_text("TEXT");
  command.add_option("--who", of->who, "Who delivers it. Default: the name of the user").option_text("NAME");
  command.add_option("--host", of->host, "Whose sagas. Default: the only host there is").option_text("NAME");
  command
      .add_option("--id", of->id, "A UUID, to repeat a signal whose outcome is unknown. Default: a new one")
      .option_text("ID");
  describe_command(
      command,
      "  settle saga signal --type pickup.confirmed --key r-1 --payload '{\"return_id\":\"r-1\"}' \\\n"
      "    --reason 'the courier has confirmed it by telephone'");
  command.callback([&shared, of] { shared.run = [&shared, of] { return signal(shared, *of); }; });
}

}  // namespace settle::cli
