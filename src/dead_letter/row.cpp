#include "dead_letter/row.hpp"

#include <charconv>

#include "base/text.hpp"
#include "retry/history.hpp"
#include "wire/stored_message.hpp"

namespace settle::inline v0::dlq {
namespace {

constexpr std::size_t message_columns = 16;  // begin there
constexpr std::size_t discard_columns = 24;  // likewise

std::optional<std::int64_t> number_from(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

dead_letter read_letter(result& rows, std::size_t row) {
  dead_letter of;
  of.what = read_message(rows, row, message_columns);
  const auto cells = rows[row];
  of.id = cells[0].integer();
  of.consumer = cells[1].text();
  of.consumer_version = cells[2].text();
  of.status = dead_letter_status_from(cells[3].text()).value_or(dead_letter_status::discarded);
  of.reason = dead_letter_reason_from(cells[4].text()).value_or(dead_letter_reason::permanent);
  of.error = cells[5].text();
  of.attempts = cells[6].integer();
  of.history = retry::read_history(cells[7].text());
  of.failed_at = cells[8].time();
  of.blocks_key = cells[9].integer() != 0;
  of.replays = cells[10].integer();
  if (!cells[11].is_null()) of.replayed_at = cells[11].time();
  of.what.topic = cells[12].text();
  of.what.key = cells[13].text();
  of.log = cells[14].text();
  of.position = cells[15].text();
  if (!cells[discard_columns].is_null()) of.discarded_at = cells[discard_columns].time();
  if (!cells[discard_columns + 1].is_null()) of.discard_reason = cells[discard_columns + 1].text();
  return of;
}

parameters letter_parameters(const dead_letter& of) {
  parameters values{of.consumer,
                    of.consumer_version,
                    to_string(of.reason),
                    storable_text(of.error, error_bytes_max),
                    of.attempts,
                    retry::history_text(of.history),
                    of.failed_at,
                    of.blocks_key,
                    of.what.topic,
                    of.what.key,
                    of.log,
                    of.position};
  append_message(values, of.what);
  return values;
}

std::string to_text(const replay_mark& of) {
  return std::to_string(of.letter) + "." + std::to_string(of.replays);
}

std::optional<replay_mark> replay_mark_of(const message& m) {
  const auto said = m.extensions.find("settlereplayof");
  if (said == m.extensions.end()) return std::nullopt;
  const std::string_view text = said->second;
  const auto point = text.find('.');
  if (point == std::string_view::npos) return std::nullopt;
  const auto letter = number_from(text.substr(0, point));
  const auto replays = number_from(text.substr(point + 1));
  if (!letter || !replays) return std::nullopt;
  return replay_mark{*letter, *replays};
}

message as_published(const message& delivered) {
  auto m = delivered;
  for (const auto* name : {"sequence", "settleplace", "settledatabase", "settlereplay", "settlereplayfor",
                           "settlereplayof", "settleoutoforder"})
    m.extensions.erase(name);
  return m;
}

}  // namespace settle::inline v0::dlq
