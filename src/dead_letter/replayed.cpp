// What a consumer does with a replay that reaches it. The letter's row decides: a copy counts as long as the
// row waits for exactly that replay.
#include "base/text.hpp"
#include "dead_letter/row.hpp"
#include "dead_letter/shared.hpp"
#include "queries/dead_letter.hpp"
#include "retry/history.hpp"
#include "settle/dead_letter.hpp"
#include "settle/ids.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {

std::string_view replay_address(const message& m) {
  const auto said = m.extensions.find("settlereplayfor");
  return said == m.extensions.end() ? std::string_view() : std::string_view(said->second);
}

bool is_replay(transaction& tx, const message& m) {
  const auto mark = dlq::replay_mark_of(m);
  if (!mark) return false;
  const auto found = tx.execute(queries::dead_letter::find_replayed, {mark->letter});
  namespace columns = queries::dead_letter::find_replayed_columns;
  if (found.empty() || found[0][columns::consumer].text() != replay_address(m) ||
      found[0][columns::topic].text() != m.topic)
    return false;
  const auto own = event_id::parse(found[0][columns::message_id].text());  // one that is no UUID was replaced
  return !own || own->text() == m.id;
}

std::optional<dead_letter> take_replay(transaction& tx, const message& m) {
  const auto mark = dlq::replay_mark_of(m);
  if (!mark) return std::nullopt;
  auto rows = with_fault_points(tx.env(), "dead_letter.take", [&] {
    return tx.execute(queries::dead_letter::take_letter,
                      {mark->letter, mark->replays, replay_address(m), tx.env().now()});
  });
  if (rows.empty()) return std::nullopt;
  auto letter = dlq::read_letter(rows, 0);
  letter.what.extensions["settlereplay"] = std::to_string(letter.replays);
  if (!letter.what.key.empty() && !letter.blocks_key) letter.what.extensions["settleoutoforder"] = "true";
  return letter;
}

std::int64_t note_replay_start(transaction& tx, const message& m) {
  const auto mark = dlq::replay_mark_of(m);
  if (!mark) return 0;
  const auto found =
      tx.execute(queries::dead_letter::lock_replaying, {mark->letter, mark->replays, replay_address(m)});
  if (found.empty()) return 0;
  auto history = retry::read_history(found[0][queries::dead_letter::lock_replaying_columns::history].text());
  history.push_back({tx.env().now(), failure_class::poison,
                     "replay " + std::to_string(mark->replays) + " begins after a process has ended"});
  const auto begun = found[0][queries::dead_letter::lock_replaying_columns::starts].integer() + 1;
  tx.execute(queries::dead_letter::note_start, {mark->letter, begun, retry::history_text(history)});
  return begun;
}

void replay_failed(transaction& tx, const message& m, const failed_attempt& how) {
  const auto mark = dlq::replay_mark_of(m);
  if (!mark) return;
  const std::string consumer(replay_address(m));
  const auto found =
      tx.execute(queries::dead_letter::lock_replaying, {mark->letter, mark->replays, consumer});
  if (found.empty()) return;
  auto history = retry::read_history(found[0][queries::dead_letter::lock_replaying_columns::history].text());
  history.push_back(how);
  with_fault_points(tx.env(), "dead_letter.return", [&] {
    tx.execute(queries::dead_letter::return_letter,
               {mark->letter, storable_text(how.error, dlq::error_bytes_max), retry::history_text(history)});
  });
  tx.env().counters->add("settle_replays_failed_total", {{"consumer", consumer}});
  tx.env().log->write(log_level::warning, "replay_failed",
                      {{"consumer", consumer},
                       {"id", std::to_string(mark->letter)},
                       {"message_id", m.id},
                       {"replays", std::to_string(mark->replays)},
                       {"class", std::string(to_string(how.why))},
                       {"error", how.error}});
}

}  // namespace settle::inline v0
