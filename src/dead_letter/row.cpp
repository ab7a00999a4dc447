#include "dead_letter/row.hpp"

#include <charconv>

#include "base/text.hpp"
#include "queries/dead_letter.hpp"
#include "retry/history.hpp"
#include "wire/stored_message.hpp"

namespace settle::inline v0::dlq {
namespace {

std::optional<std::int64_t> number_from(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

// Three queries are read alike.
namespace columns = queries::dead_letter::read_letters_columns;
static_assert(columns::all == queries::dead_letter::send_letters_columns::all);
static_assert(columns::all == queries::dead_letter::take_letter_columns::all);

dead_letter read_letter(result& rows, std::size_t row) {
  dead_letter of;
  of.what = read_message(rows, row, columns::message_id);
  const auto cells = rows[row];
  of.id = cells[columns::id].integer();
  of.consumer = cells[columns::consumer].text();
  of.consumer_version = cells[columns::consumer_version].text();
  of.status = dead_letter_status_from(cells[columns::status].text()).value_or(dead_letter_status::discarded);
  of.reason = dead_letter_reason_from(cells[columns::reason].text()).value_or(dead_letter_reason::permanent);
  of.error = cells[columns::error].text();
  of.attempts = cells[columns::attempts].integer();
  of.history = retry::read_history(cells[columns::history].text());
  of.failed_at = cells[columns::failed_at].time();
  of.blocks_key = cells[columns::blocks_key].integer() != 0;
  of.replays = cells[columns::replays].integer();
  if (!cells[columns::replayed_at].is_null()) of.replayed_at = cells[columns::replayed_at].time();
  of.what.topic = cells[columns::topic].text();
  of.what.key = cells[columns::message_key].text();
  of.log = cells[columns::log].text();
  of.position = cells[columns::position].text();
  if (!cells[columns::discarded_at].is_null()) of.discarded_at = cells[columns::discarded_at].time();
  if (!cells[columns::discard_reason].is_null()) of.discard_reason = cells[columns::discard_reason].text();
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
