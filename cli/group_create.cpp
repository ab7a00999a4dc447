// settle group create: a group before its first consumer runs.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"
#include "compose/service_broker.hpp"
#include "settle/driver/broker.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

struct create_arguments {
  std::string group;
  std::vector<std::string> topics;
  std::int64_t queues = 0;  // as the file says, or the default
};

int create(context& shared, const create_arguments& asked) {
  const auto where = shared.broker_path();
  if (!compose::is_broker_server(where)) require_ready(where, file_kind::broker);
  auto with = shared.broker_options();
  if (asked.queues != 0) with.rabbitmq.queues = static_cast<int>(asked.queues);
  compose::open_broker(where, with)->create_group(asked.group, asked.topics);
  shared.note_done(fmt::format("group {} was created", asked.group));
  if (shared.json) {
    json::array topics;
    for (const auto& one : asked.topics) topics.emplace_back(safe_json_text(one));
    fmt::print("{}\n", json::serialize(json::object{{"group", safe_json_text(asked.group)},
                                                    {"topics", std::move(topics)}}));
    return exit_ok;
  }
  for (const auto& one : asked.topics)
    fmt::print("group {} listens to {}\n", for_terminal(asked.group), for_terminal(one));
  return exit_ok;
}

}  // namespace

void add_group_create(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("create",
                        "Create a group before its first consumer runs, so that what is published from now\n"
                        "on is kept for it. A group that is there already stays as it is.");
  const auto asked = std::make_shared<create_arguments>();
  command.add_option("GROUP", asked->group, "Its name: that of the consumer").option_text(" ").required();
  command.add_option("--topic", asked->topics, "A topic that it listens to; may be repeated")
      .option_text("NAME")
      .one_value_each()
      .required();
  command
      .add_option("--queues", asked->queues,
                  "Of a RabbitMQ: queues for each topic, so members that work at once, 1 to 256; fixed from\n"
                  "then on, and the consumers have to say the same. Default: as the file says, or 8")
      .option_text("N")
      .between(1, 256);
  describe_command(command,
                   "  settle group create warehouse --topic orders --topic payments\n"
                   "  settle group create warehouse --topic orders --broker amqp://mq.internal/shop");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return create(shared, *asked); }; });
}

}  // namespace settle::cli
