// Discarding: the row stays and says why, and what waits behind the letter goes on.
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "consume/shared.hpp"
#include "dead_letter/find.hpp"
#include "dead_letter/shared.hpp"
#include "queries/dead_letter.hpp"
#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {
namespace dlq {
namespace {

constexpr std::size_t together_max = 100;  // the consumer waits for whoever holds its keys

dead_letter_status status_of(const dead_letter_filter& which) {
  const auto status = which.status.value_or(dead_letter_status::fresh);
  if (status != dead_letter_status::fresh && status != dead_letter_status::replaying)
    throw error(
        errc::invalid_argument,
        "only letters that are NEW or REPLAYING can be discarded: the others have run, or were discarded");
  return status;
}

// Keys before letters, as a consumer never waits for a key while it holds a letter that this waits for.
std::int64_t discard_some(transaction& tx, const std::string& ids, std::string_view status,
                          std::string_view reason) {
  const auto waiting = tx.execute(queries::dead_letter::read_keys_that_wait, {ids, status});
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    namespace columns = queries::dead_letter::read_keys_that_wait_columns;
    const auto row = waiting[i];
    lock_blocked_key(
        tx, {row[columns::consumer].text(), row[columns::topic].text(), row[columns::message_key].text()});
  }
  const auto gone = tx.execute(queries::dead_letter::discard_letters, {ids, status, tx.env().now(), reason});
  namespace columns = queries::dead_letter::discard_letters_columns;
  std::set<std::tuple<std::string, std::string, std::string>> keys;
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (gone[i][columns::blocks_key].integer() != 0)
      keys.emplace(gone[i][columns::consumer].text(), gone[i][columns::topic].text(),
                   gone[i][columns::message_key].text());
  for (const auto& [consumer, topic, key] : keys) release_blocked_key(tx, {consumer, topic, key});
  return static_cast<std::int64_t>(gone.size());
}

}  // namespace
}  // namespace dlq

discard_outcome discard(database& db, const dead_letter_filter& which, std::string_view reason,
                        std::stop_token stop, const std::function<void(const discard_outcome&)>& progress) {
  const auto status = dlq::status_of(which);
  check_name(reason, {"reason for discarding", discard_reason_bytes_max});
  const dlq::search found(which, status);
  discard_outcome outcome;
  dlq::id_range range;
  {
    auto tx = db.read();
    const auto all = found.measure(tx);
    outcome.matching = all.count;
    range.upto = all.highest;
  }
  const auto next_batch = [&] {
    auto tx = db.begin(stop);
    const auto ids = found.find(tx, range, dlq::together_max);
    if (ids.empty()) return false;
    const auto discarded = dlq::discard_some(tx, dlq::json_ids(ids), to_string(status), reason);
    tx.commit("dead_letter.discard");
    range.after = ids.back();
    outcome.discarded += discarded;
    if (progress) progress(outcome);
    return true;
  };
  try {
    while (!stop.stop_requested() && next_batch()) {
    }
  } catch (const error& e) {
    if (e.code() != errc::cancelled || !stop.stop_requested()) throw;
  }
  return outcome;
}

}  // namespace settle::inline v0
