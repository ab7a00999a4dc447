#include "cli/dlq_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/time_text.hpp"
#include "cli/failure.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

std::optional<duration> length_from(std::string_view text) {
  using namespace std::chrono;
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t number_max = 1'000'000'000;
  if (failed != std::errc{} || number < 0 || number > number_max || end + 1 != text.data() + text.size())
    return std::nullopt;
  switch (*end) {
    case 's':
      return seconds(number);
    case 'm':
      return minutes(number);
    case 'h':
      return hours(number);
    case 'd':
      return days(std::min<std::int64_t>(number, 100'000));
    default:
      return std::nullopt;
  }
}

std::optional<dead_letter_status> status_from(const std::string& text) {
  auto upper = text;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper == "ANY") return std::nullopt;
  const auto status = dead_letter_status_from(upper);
  if (!status)
    throw failure(errc::invalid_argument,
                  fmt::format("'{}' is no status; there are NEW, REPLAYING, REPLAYED, DISCARD_REQUESTED, "
                              "DISCARDED, and ANY for all of them",
                              text));
  return status;
}

std::optional<dead_letter_reason> reason_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto reason = dead_letter_reason_from(text);
  if (!reason)
    throw failure(errc::invalid_argument,
                  fmt::format("'{}' is no reason; there are permanent, exhausted, too_old, crashed_process, "
                              "beyond_dedup_horizon, imported",
                              text));
  return reason;
}

}  // namespace

timestamp time_from(std::string_view option, std::string_view text, timestamp now) {
  if (const auto at = from_rfc3339(text)) return *at;
  if (const auto day = from_rfc3339(std::string(text) + "T00:00:00Z")) return *day;
  if (const auto ago = length_from(text)) return now - *ago;
  throw failure(
      errc::invalid_argument,
      fmt::format("{} '{}' is no time: write 2026-01-31T12:00:00Z, 2026-01-31, or how long ago: 90s, "
                  "15m, 2h, 3d",
                  option, text));
}

bool letter_options::empty() const {
  return ids.empty() && consumer.empty() && topic.empty() && type.empty() && key.empty() && event.empty() &&
         reason.empty() && since.empty() && until.empty();
}

dead_letter_filter letter_options::filter(timestamp now) const {
  dead_letter_filter which;
  which.ids = ids;
  which.event_id = event;
  which.consumer = consumer;
  which.topic = topic;
  which.type = type;
  which.key = key;
  which.reason = reason_from(reason);
  which.status = status_from(status);
  if (!since.empty()) which.failed_from = time_from("--since", since, now);
  if (!until.empty()) which.failed_until = time_from("--until", until, now);
  return which;
}

void require_scope(const letter_options& which, bool all) {
  if (which.empty() && !all)
    throw failure(errc::invalid_argument,
                  "say which letters: their ids, options such as --consumer or --type, or --all");
  if (!which.ids.empty() && all)
    throw failure(errc::invalid_argument, "give either the ids of letters or --all");
}

dead_letter_filter undecided_filter(const letter_options& which, timestamp now) {
  auto made = which.filter(now);
  const bool fits = made.status && (*made.status == dead_letter_status::fresh ||
                                    *made.status == dead_letter_status::replaying);
  if (!fits)
    throw failure(errc::invalid_argument,
                  "--status is NEW or REPLAYING here: the others have run already, or were discarded");
  return made;
}

void require_found(const dead_letter_filter& which, std::int64_t matching) {
  const std::set<std::int64_t> wanted(which.ids.begin(), which.ids.end());
  const auto missing = static_cast<std::int64_t>(wanted.size()) - matching;
  if (missing <= 0) return;
  throw failure(
      errc::invalid_argument,
      fmt::format("{} of the {} name no dead letter that is {} and matches; nothing was changed. See "
                  "`settle dlq list --status ANY`",
                  missing, counted(static_cast<std::int64_t>(wanted.size()), "id"),
                  to_string(*which.status)));
}

void add_letter_options(command_syntax to, letter_options& into, const char* status_help,
                        const char* reason_name) {
  to.add_option("--consumer", into.consumer, "Given up by this consumer").option_text("NAME");
  to.add_option("--topic", into.topic, "Of this topic: the original one, without .dlq").option_text("NAME");
  to.add_option("--type", into.type, "Of this event type").option_text("NAME");
  to.add_option("--key", into.key, "Of this key").option_text("KEY");
  to.add_option("--event", into.event, "Of the message with this id; each consumer has its own letter of it")
      .option_text("ID");
  to.add_option(reason_name, into.reason,
                "Given up because of permanent, exhausted, too_old, crashed_process,\nbeyond_dedup_horizon "
                "or imported")
      .option_text("REASON");
  to.add_option("--status", into.status, status_help).option_text("STATUS");
  to.add_option("--since", into.since,
                "Given up then or later: 2026-01-31T12:00:00Z, 2026-01-31 (UTC), or how long ago:\n"
                "90s, 15m, 2h, 3d")
      .option_text("TIME");
  to.add_option("--until", into.until, "Given up before that; the same forms").option_text("TIME");
}

}  // namespace settle::cli
