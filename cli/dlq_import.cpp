// settle dlq import: what others have given up, from a queue that their broker dead-letters into.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/stop_signals.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"
#include "compose/service_broker.hpp"
#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

// The queue is empty when nothing has come for so long.
constexpr duration silence = std::chrono::seconds(2);
constexpr duration look_every = std::chrono::milliseconds(100);

struct import_arguments {
  std::string queue;
  std::string consumer;
  std::string topic;
  message_mapping mapping;
};

// A name of its own: it must not touch what is parked or remembered for the consumer that gets the letters.
std::string name_of(const import_arguments& asked) { return "import/" + asked.queue; }

// The counts that are told at the end.
consumer_counts import_all(consumer& from, const stop_signals& signals) {
  auto quiet_since = from.env().now();
  auto last = from.counts().applied;
  while (!signals.stop().stop_requested()) {
    const bool more = from.run_once(signals.cancel());
    const auto now = from.env().now();
    if (more || from.counts().applied != std::exchange(last, from.counts().applied)) quiet_since = now;
    if (now - quiet_since >= silence) break;
    if (!more) from.arrivals().wait(look_every, signals.stop());
  }
  from.leave();
  return from.counts();
}

int import(context& shared, const import_arguments& asked) {
  const auto where = shared.broker_path();
  if (!compose::is_broker_server(where))
    throw failure(errc::invalid_argument,
                  "the broker is a file, which has no queues of others; name a RabbitMQ with --broker");
  const stop_signals signals;
  const auto db = open_existing(shared.service_path(), file_kind::service);
  auto with = shared.broker_options();
  with.rabbitmq.existing_queues = {{asked.queue, name_of(asked), asked.topic, asked.mapping}};
  const auto broker = compose::open_broker(where, with);
  consumer from(*db, *broker, {.name = name_of(asked)});
  from.on(asked.topic, "", import_as_dead_letter(asked.consumer));
  const auto counts = import_all(from, signals);
  shared.note_done(fmt::format("{} imported", counted(counts.applied, "letter")));
  if (shared.json) {
    fmt::print("{}\n", json::serialize(json::object{{"imported", counts.applied},
                                                    {"known", counts.duplicates},
                                                    {"unreadable", counts.dead_letters}}));
    return exit_ok;
  }
  fmt::print("{} imported", counted(counts.applied, "letter"));
  if (counts.duplicates > 0) fmt::print(", {} had been before", grouped(counts.duplicates));
  fmt::print("\n");
  if (counts.dead_letters > 0)
    fmt::print("{}\n", with_given(fmt::format("{} could not be read, say without an id: see `settle dlq list "
                                              "--consumer {}`",
                                              counted(counts.dead_letters, "message"), name_of(asked)),
                                  shared.given));
  return exit_ok;
}

}  // namespace

void add_dlq_import(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "import",
      "Take the messages of a queue that others dead-letter into, and keep each as a dead\n"
      "letter, with what its headers say about its failures (RabbitMQ's x-death; MassTransit,\n"
      "NServiceBus, Watermill). A message leaves the queue when its letter is committed. Ends\n"
      "when the queue is empty, and may be repeated.");
  const auto asked = std::make_shared<import_arguments>();
  command.add_option("QUEUE", asked->queue, "The queue, on the RabbitMQ of --broker")
      .option_text(" ")
      .required();
  command
      .add_option("--consumer", asked->consumer,
                  "Whose letters they become: the consumer that runs them when they are replayed")
      .option_text("NAME")
      .required();
  command.add_option("--topic", asked->topic, "The topic of these messages, where a replay goes")
      .option_text("NAME")
      .required();
  const auto place = [&](const char* name, std::vector<std::string>& into, const char* about) {
    command.add_option(name, into, about).option_text("TEMPLATE").one_value_each();
  };
  place("--id", asked->mapping.id,
        "Where the id of a message is, if it is no CloudEvent: text with {property:message-id},\n"
        "{header:NAME} and {payload:/PLACE}; repeated: the first that fits. Default: message-id");
  place("--type", asked->mapping.type, "Likewise its type. Default: none");
  place("--key", asked->mapping.key, "Likewise its key. Default: none");
  describe_command(command,
                   "  settle dlq import payments.dead --consumer warehouse --topic payments\n"
                   "  settle dlq import payments.dead --consumer warehouse --topic payments \\\n"
                   "    --id '{property:message-id}' --id '{payload:/orderId}-{header:event}'");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return import(shared, *asked); }; });
}

}  // namespace settle::cli
