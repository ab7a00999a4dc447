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
#include "cli/topic_reader.hpp"

namespace settle::cli {
namespace {

constexpr std::int64_t page_max = 256;     // positions read at once; payloads are read one by one
constexpr std::int64_t last_max = 10'000;  // what --last accepts; more is --from-start
constexpr duration poll = std::chrono::milliseconds(500);

struct tail_arguments {
  std::string topic;
  bool from_start = false;
  std::int64_t last = 10;
  bool follow = false;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

class printer {
 public:
  printer(topic_reader& from, std::int64_t max, bool json) : from_(from), left_(max), json_(json) {}

  // Prints them, as far as the maximum allows, so that whoever reads a pipe gets them now.
  void print(const std::vector<std::int64_t>& positions) {
    for (const auto position : positions) {
      if (left_ == 0) break;
      const auto m = from_.at(position);
      fmt::print("{}", json_ ? message_json(m) : message_text(m));
      --left_;
    }
    std::fflush(stdout);
  }
  // Also when nobody can receive any more: a full disk must not be filled for ever.
  bool done() const { return left_ == 0 || std::ferror(stdout) != 0; }

 private:
  topic_reader& from_;
  std::int64_t left_;
  bool json_;
};

// Everything after `position` that is there now; returns the position that was reached.
std::int64_t print_after(topic_reader& reader, printer& out, std::int64_t position,
                         const std::stop_token& stop) {
  while (!out.done() && !stop.stop_requested()) {
    const auto page = reader.after(position, page_max);
    if (page.empty()) break;
    out.print(page);
    position = page.back();
  }
  return position;
}

void tail_topic(database& broker, const tail_arguments& wanted, bool json, const std::stop_token& stop) {
  topic_reader reader(broker, wanted.topic);
  printer out(reader, wanted.max, json);
  const auto arrivals = wanted.follow ? broker.watch() : nullptr;
  std::int64_t position = 0;
  if (wanted.from_start) {
    position = print_after(reader, out, 0, stop);
  } else {
    // Where following begins if there is no message to begin after: an empty topic, or --last 0.
    position = reader.head();
    const auto found = reader.last(wanted.last);
    if (!found.empty()) position = found.back();
    out.print(found);
  }
  while (wanted.follow && !out.done() && !stop.stop_requested()) {
    arrivals->wait(poll, stop);
    position = print_after(reader, out, position, stop);
  }
}

int tail_command(const context& shared, const tail_arguments& wanted) {
  // Only following needs them; a plain tail ends at once when it is interrupted.
  std::optional<stop_signals> signals;
  if (wanted.follow) signals.emplace();
  const auto broker = open_existing(shared.broker_path(), file_kind::broker);
  tail_topic(*broker, wanted, shared.json, signals ? signals->stop() : std::stop_token());
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
