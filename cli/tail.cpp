// settle tail: prints the messages of a topic. Joins no group and acknowledges nothing.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/message_text.hpp"
#include "cli/stop_signals.hpp"
#include "cli/syntax.hpp"
#include "settle/driver/broker_inspection.hpp"

namespace settle::cli {
namespace {

constexpr std::size_t last_max = 10'000;  // what --last accepts; more is --from-start
constexpr duration poll = std::chrono::milliseconds(500);

struct tail_arguments {
  std::string topic;
  bool from_start = false;
  std::size_t last = 10;
  bool follow = false;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

class printer {
 public:
  printer(std::int64_t max, bool json) : left_(max), json_(json) {}

  // Prints them, as far as the maximum allows, so that whoever reads a pipe gets them now.
  void print(const std::vector<placed_message>& messages) {
    for (const auto& one : messages) {
      if (left_ == 0) break;
      fmt::print("{}", json_ ? message_json(one.content) : message_text(one.content));
      --left_;
    }
    std::fflush(stdout);
  }
  // Also when nobody can receive any more: a full disk must not be filled for ever.
  bool done() const { return left_ == 0 || std::ferror(stdout) != 0; }

 private:
  std::int64_t left_;
  bool json_;
};

// Everything after `place` that is there now; returns the place that was reached.
log_position print_after(broker_log& log, const std::string& topic, printer& out, log_position place,
                         const std::stop_token& stop) {
  while (!out.done() && !stop.stop_requested()) {
    const auto page = log.read(topic, place, {});
    if (page.empty()) break;
    out.print(page);
    place = page.back().place;
  }
  return place;
}

void require_topic(broker_inspection& broker, const std::string& name) {
  auto topics = broker.topics();
  if (std::ranges::find(topics, name, &inspected_topic::name) != topics.end()) return;
  std::ranges::sort(topics, {}, &inspected_topic::name);
  std::string known;
  for (const auto& one : topics) known += (known.empty() ? "" : ", ") + one.name;
  throw failure(errc::invalid_argument,
                known.empty()
                    ? fmt::format("there is no topic '{}'; the broker has none yet: publish an event and "
                                  "run `settle relay`",
                                  name)
                    : fmt::format("there is no topic '{}'; known topics: {}", name, known));
}

void tail_topic(broker_inspection& broker, const tail_arguments& wanted, bool json,
                const std::stop_token& stop) {
  require_topic(broker, wanted.topic);
  auto* const log = broker.log();
  if (log == nullptr)
    throw failure(errc::invalid_argument,
                  fmt::format("{} cannot be read from a place: it keeps no messages for those who only look",
                              broker.name()));
  printer out(wanted.max, json);
  const auto arrivals = wanted.follow ? log->arrivals() : nullptr;
  const auto from = wanted.from_start ? log_position() : log->before_last(wanted.topic, wanted.last);
  auto place = print_after(*log, wanted.topic, out, from, stop);
  while (wanted.follow && !out.done() && !stop.stop_requested()) {
    arrivals->wait(poll, stop);
    place = print_after(*log, wanted.topic, out, place, stop);
  }
}

int tail_command(const context& shared, const tail_arguments& wanted) {
  // Only following needs them; a plain tail ends at once when it is interrupted.
  std::optional<stop_signals> signals;
  if (wanted.follow) signals.emplace();
  const auto broker = open_broker_view(shared.broker_path(), shared.broker_options());
  tail_topic(broker->inspection(), wanted, shared.json, signals ? signals->stop() : std::stop_token());
  return exit_ok;
}

}  // namespace

void add_tail(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("tail",
                                         "Print the messages of a topic, oldest first.\n"
                                         "Joins no group and acknowledges nothing: consumers do not notice.");
  const auto wanted = std::make_shared<tail_arguments>();
  command.add_option("TOPIC", wanted->topic, "The topic; `settle status` lists them")
      .required()
      .option_text(" ");
  const auto start =
      command.add_flag("--from-start", wanted->from_start, "Begin with the oldest message").option_text(" ");
  command.add_option("--last", wanted->last, "Begin with the last N messages, 0 to 10,000. Default: 10")
      .option_text("N")
      .between(std::int64_t{0}, last_max)
      .excludes(start);
  command.add_flag("-f,--follow", wanted->follow, "Keep printing what arrives, until Ctrl-C")
      .option_text(" ");
  command.add_option("--max", wanted->max, "End after N messages. Default: no limit")
      .option_text("N")
      .positive();
  describe_command(command,
                   "  settle tail orders --last 3\n"
                   "  settle tail orders --follow --json | jq .data");
  command.callback(
      [&shared, wanted] { shared.run = [&shared, wanted] { return tail_command(shared, *wanted); }; });
}

}  // namespace settle::cli
