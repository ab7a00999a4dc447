#include "cli/dlq_text.hpp"

#include <fmt/format.h>

#include "base/time_text.hpp"
#include "cli/message_text.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t error_shown_max = 60;  // bytes, in a table
constexpr std::size_t key_shown_max = 40;
constexpr std::size_t hex_shown_max = 512;
constexpr std::size_t hex_per_line = 16;

std::string hex_text(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size() && at < hex_shown_max; at += hex_per_line) {
    out += fmt::format("    {:04x} ", at);
    for (const char c : bytes.substr(at, hex_per_line))
      out += fmt::format(" {:02x}", static_cast<unsigned char>(c));
    out += '\n';
  }
  if (bytes.size() > hex_shown_max) out += "    … --json has all of it\n";
  return out;
}

std::string replays_text(const dead_letter& of) {
  if (of.replays == 0) return "none";
  const auto last = of.replayed_at ? fmt::format(", last {}", short_time(*of.replayed_at)) : std::string();
  return grouped(of.replays) + last;
}

std::string key_text(const dead_letter& of) {
  if (!of.blocks_key) return "went on: later messages of it may have run already";
  const bool ended = of.status == dead_letter_status::replayed || of.status == dead_letter_status::discarded;
  return ended ? "has waited, and went on when this one had ended"
               : "waits: later messages of it run when this one is replayed or discarded";
}

std::string history_text(const dead_letter& of) {
  if (of.history.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const auto& one : of.history)
    rows.push_back({short_time(one.at), std::string(to_string(one.why)), for_terminal(one.error)});
  const auto kept = std::ssize(of.history);
  const auto note = kept < of.attempts ? fmt::format(" (the last {})", kept) : std::string();
  return fmt::format("\nAttempts{}\n", note) + table({align::left, align::left, align::left}, rows, 2);
}

}  // namespace

std::string first_letters_text(const std::vector<dead_letter>& letters, std::int64_t matching) {
  if (letters.empty()) return {};
  letter_table lines;
  for (const auto& one : letters) lines.add(one);
  const auto more = matching - std::ssize(letters);
  return "\n" + lines.text() + (more > 0 ? fmt::format("… and {} more\n", grouped(more)) : std::string());
}

json::array summaries_json(const std::vector<dead_letter>& letters) {
  json::array all;
  for (const auto& one : letters) all.push_back(letter_summary_json(one));
  return all;
}

letter_table::letter_table()
    : rows_{{"id", "given up", "status", "consumer", "topic", "type", "key", "reason", "attempts", "error"}} {
}

void letter_table::add(const dead_letter& of) {
  rows_.push_back({std::to_string(of.id), short_time(of.failed_at), std::string(to_string(of.status)),
                   for_terminal(of.consumer), for_terminal(of.what.topic), for_terminal(of.what.type),
                   cut(of.what.key, key_shown_max), std::string(to_string(of.reason)), grouped(of.attempts),
                   cut(of.error, error_shown_max)});
}

std::string letter_table::text() const {
  constexpr auto left = align::left, right = align::right;
  return table({right, left, left, left, left, left, left, left, right, left}, rows_, 0);
}

std::string letter_text(const dead_letter& of, timestamp now) {
  auto out = fmt::format("Dead letter {}, {}\n", of.id, to_string(of.status));
  const auto add = [&](std::string_view name, const std::string& content) {
    out += fmt::format("  {:<10} {}\n", name, content);
  };
  add("consumer",
      for_terminal(of.consumer) +
          (of.consumer_version.empty() ? std::string() : ", version " + for_terminal(of.consumer_version)));
  add("reason", fmt::format("{}, after {}", to_string(of.reason), counted(of.attempts, "attempt")));
  add("given up", fmt::format("{} ({} ago)", short_time(of.failed_at), age(now - of.failed_at)));
  add("error", for_terminal(of.error));
  if (!of.log.empty()) add("came from", fmt::format("{}, position {}", for_terminal(of.log), of.position));
  add("replays", replays_text(of));
  if (!of.what.key.empty()) add("its key", key_text(of));
  if (of.discarded_at)
    add("discarded", fmt::format("{}: {}", short_time(*of.discarded_at), for_terminal(of.discard_reason)));
  out += history_text(of);
  out += "\nMessage, on " + for_terminal(of.what.topic) + "\n  " + message_text(of.what);
  if (!is_printable(of.what.payload)) out += hex_text(of.what.payload);
  return out;
}

json::object letter_summary_json(const dead_letter& of) {
  json::object made{{"id", of.id},
                    {"status", std::string(to_string(of.status))},
                    {"consumer", safe_json_text(of.consumer)},
                    {"consumer_version", safe_json_text(of.consumer_version)},
                    {"reason", std::string(to_string(of.reason))},
                    {"error", safe_json_text(of.error)},
                    {"attempts", of.attempts},
                    {"failed_at", to_rfc3339(of.failed_at)},
                    {"blocks_key", of.blocks_key},
                    {"replays", of.replays},
                    {"replayed_at", nullptr},
                    {"discarded_at", nullptr},
                    {"discard_reason", nullptr},
                    {"event_id", safe_json_text(of.what.id)},
                    {"topic", safe_json_text(of.what.topic)},
                    {"type", safe_json_text(of.what.type)},
                    {"key", safe_json_text(of.what.key)},
                    {"partition", safe_json_text(of.log)},
                    {"offset", of.position}};
  if (of.replayed_at) made["replayed_at"] = to_rfc3339(*of.replayed_at);
  if (of.discarded_at) {
    made["discarded_at"] = to_rfc3339(*of.discarded_at);
    made["discard_reason"] = safe_json_text(of.discard_reason);
  }
  return made;
}

std::string letter_json(const dead_letter& of) {
  auto made = letter_summary_json(of);
  json::array history;
  for (const auto& one : of.history)
    history.push_back({{"at", to_rfc3339(one.at)},
                       {"class", std::string(to_string(one.why))},
                       {"error", safe_json_text(one.error)}});
  made["history"] = std::move(history);
  auto line = json::serialize(made);
  auto content = message_json(of.what);  // as it was written: reading it again would round large numbers
  content.pop_back();
  line.insert(line.size() - 1, ",\"message\":" + content);
  return line + '\n';
}

}  // namespace settle::cli
