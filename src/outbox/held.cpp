#include "outbox/held.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/sortable.hpp"
#include "outbox/lanes.hpp"
#include "outbox/store.hpp"
#include "outbox/window.hpp"
#include "queries/outbox.hpp"
#include "retry/judge.hpp"
#include "settle/metrics.hpp"

namespace settle::outbox {
namespace {

constexpr std::size_t keys_per_batch = 16;
constexpr std::int64_t rows_per_key = 32;
constexpr std::int64_t free_rows = 128;
constexpr duration no_taker_wait = std::chrono::seconds(5);
constexpr duration tell_again = std::chrono::minutes(1);

// Behind everything that the share has delivered, before everything that it will deliver, and like no other.
std::string place_behind(dialect speaks, const cursor& at, std::int64_t number) {
  if (speaks == dialect::sqlite) return sortable({at.seq, number});
  if (at.upto > 0) return sortable({at.upto, at.seq, number});
  return sortable({at.tick, std::numeric_limits<std::int64_t>::max(), number});
}

template <class Shares>
std::uint32_t mask_of(const Shares& shares) {
  std::uint32_t mask = 0;
  for (const auto& [share, unused] : shares) mask |= 1U << share;
  return mask;
}

std::optional<timestamp> read_free_due(transaction& tx, const std::map<int, sql::holding>& shares) {
  const auto due = tx.execute(queries::outbox::read_free_due, {mask_of(shares)});
  const auto& first = due[0][queries::outbox::read_free_due_columns::next_at];
  return first.is_null() ? std::nullopt : std::optional(first.time());
}

}  // namespace

void held_book::keep_only(std::uint32_t shares) {
  std::erase_if(keys_, [&](const auto& entry) { return (shares >> entry.first.share & 1) == 0; });
}

std::vector<held_key> held_book::due_keys(timestamp now, std::uint32_t shares, std::size_t at_most) const {
  std::vector<held_key> due;
  for (const auto& [key, at] : keys_) {
    if (due.size() == at_most) break;
    if (at <= now && (shares >> key.share & 1) != 0) due.push_back(key);
  }
  return due;
}

std::optional<timestamp> held_book::next_due() const {
  auto next = free_due_;
  for (const auto& [key, at] : keys_)
    if (at != never) next = std::min(next.value_or(at), at);
  return next;
}

held_events::held_events(database& db, const sql::ownership& owned, const relay_options& options)
    : db_(db), owned_(owned), options_(options) {}

// An event without a key keeps nobody waiting, nor does one that was given up, unless the options say so.
bool held_events::holds_its_key(timestamp next_at, const std::string& key) const {
  return !key.empty() && (next_at != held_book::never || options_.on_exhausted == exhausted::hold_key);
}

void held_events::hold(const held_event& one) {
  if (one.why == fate::delayed || (one.of.key.empty() && one.next_at != held_book::never))
    book_.hold_free(one.next_at);
  else if ((one.why == fate::rejected || one.why == fate::unwanted) && holds_its_key(one.next_at, one.of.key))
    book_.hold_key(one.of, one.next_at);
  else if (one.why == fate::behind)
    book_.block(one.of);
}

void held_events::insert(transaction& tx, std::span<const held_event> held) const {
  std::vector<parameters> rows;
  for (const auto& one : held) {
    const bool rejected = one.why == fate::rejected;
    const bool has_error = rejected || one.why == fate::unwanted;
    const bool given_up = one.next_at == held_book::never;
    const bool blocks = one.why != fate::delayed && holds_its_key(one.next_at, one.of.key);
    rows.push_back({one.seq, one.tick, static_cast<std::int64_t>(blocks), static_cast<std::int64_t>(rejected),
                    given_up ? db_.env().now() : one.next_at, has_error ? value(one.error) : value(),
                    given_up ? "FAILED" : "WAITING", one.place.empty() ? value() : value(one.place)});
  }
  tx.execute_many(queries::outbox::hold_event, rows);
}

void held_events::reload(transaction& tx, const std::map<int, sql::holding>& shares, bool gained) {
  const auto now = db_.env().now();
  // Not each time: it looks at everything that waits for its own time.
  if (now < std::exchange(reloaded_at_, now) || gained)
    tx.post(queries::outbox::pull_held, {now, now + options_.retry_wait_max, mask_of(shares)});
  namespace columns = queries::outbox::read_held_keys_columns;
  held_book fresh;
  const auto rows = tx.execute(queries::outbox::read_held_keys);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const bool given_up = row[columns::has_failed].integer() != 0;
    fresh.hold_key({static_cast<int>(row[columns::share].integer()), row[columns::topic].text(),
                    row[columns::aggregate_id].text()},
                   given_up ? held_book::never : row[columns::next_at].time());
  }
  fresh.keep_only(mask_of(shares));
  fresh.set_free_due(read_free_due(tx, shares));
  book_ = std::move(fresh);
}

held_events::batch held_events::release(const std::map<int, cursor>& reached, const std::stop_token& cancel) {
  const auto now = db_.env().now();
  batch found;
  std::vector<std::size_t> without_place;
  auto tx = db_.begin(cancel);
  owned_.confirm(tx);
  namespace columns = queries::outbox::read_held_key_columns;
  static_assert(columns::all == queries::outbox::read_held_free_columns::all);
  static_assert(columns::all.starts_with(queries::outbox::read_window_columns::all));
  const auto add = [&](result rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto [seq, share, unused] = window_row_of(rows[i]);
      const auto& given = rows[i][columns::place];
      const auto place = given.is_null() ? std::string() : given.text();
      found.rows.push_back({seq, share, rows[i][columns::attempts].integer(), !place.empty()});
      if (place.empty()) without_place.push_back(found.rows.size() - 1);
      found.messages.push_back(message_of(rows, i, found.changed));
      found.messages.back().extensions["settleplace"] = place;
    }
    return static_cast<std::int64_t>(rows.size());
  };
  for (auto& key : book_.due_keys(now, mask_of(reached), keys_per_batch)) {
    const auto count = add(
        tx.execute(queries::outbox::read_held_key, {lane_of(key.key, {}), key.key, rows_per_key, key.topic}));
    if (count == 0)
      book_.release_key(key);
    else if (count < rows_per_key)
      found.emptied.push_back(std::move(key));
  }
  if (book_.free_is_due(now) &&
      add(tx.execute(queries::outbox::read_held_free, {now, mask_of(reached), free_rows})) == 0)
    book_.set_free_due(read_free_due(tx, owned_.held()));  // those that seemed due wait behind others
  if (!without_place.empty()) give_places(tx, found, reached, without_place);
  tx.commit("relay.release");
  return found;
}

void held_events::give_places(transaction& tx, batch& all, const std::map<int, cursor>& reached,
                              std::span<const std::size_t> without) const {
  const auto count = static_cast<std::int64_t>(without.size());
  const auto drawn = tx.execute(queries::outbox::draw_places, {count});
  auto number = drawn[0][queries::outbox::draw_places_columns::places_drawn].integer() - count;
  std::vector<parameters> places;
  for (const auto i : without) {
    const auto& row = all.rows[i];
    auto place = place_behind(db_.speaks(), reached.at(row.share), ++number);
    places.push_back({row.seq, place});
    all.messages[i].extensions["settleplace"] = std::move(place);
  }
  tx.execute_many(queries::outbox::give_place, places);
}

std::int64_t held_events::conclude(const batch& sent, std::span<const fate> fates,
                                   std::span<const publish_result> results, const std::stop_token& cancel) {
  auto book = book_;  // what it will be once this has committed
  std::set<held_key> stuck;
  std::vector<parameters> out, unsent;
  auto tx = db_.begin(cancel);
  owned_.confirm(tx);
  for (std::size_t i = 0; i < fates.size(); ++i) {
    const auto& row = sent.rows[i];
    const auto& m = sent.messages[i];
    if (fates[i] == fate::confirmed) {
      out.push_back({row.seq});
      continue;
    }
    const held_key key{row.share, m.topic, m.key};
    stuck.insert(key);
    if (fates[i] == fate::behind && !row.sent_before) unsent.push_back({row.seq});
    if (fates[i] == fate::unwanted) {
      const auto next_at = after_no_taker(m.topic, results[i].reason);
      tx.execute(queries::outbox::note_unwanted,
                 {row.seq, next_at, results[i].reason, static_cast<std::int64_t>(row.sent_before)});
      if (!m.key.empty()) book.hold_key(key, next_at);
    }
    if (fates[i] != fate::rejected) continue;
    const auto next_at = after_rejection(m, row.attempts + 1, results[i].reason);
    const bool blocks = holds_its_key(next_at, m.key);
    const bool given_up = next_at == held_book::never;
    tx.execute(
        queries::outbox::note_rejection,
        {row.seq, given_up ? db_.env().now() : next_at, results[i].reason, static_cast<std::int64_t>(blocks),
         given_up ? "FAILED" : "WAITING", static_cast<std::int64_t>(row.sent_before)});
    if (!m.key.empty()) book.hold_key(key, blocks ? next_at : timestamp());
  }
  tx.execute_many(queries::outbox::remove_held, out);
  tx.execute_many(queries::outbox::take_place_back, unsent);
  for (const auto& key : sent.emptied)
    if (!stuck.contains(key)) book.release_key(key);
  book.set_free_due(read_free_due(tx, owned_.held()));
  tx.commit("relay.retry");
  book_ = std::move(book);
  return static_cast<std::int64_t>(out.size());
}

timestamp held_events::after_no_taker(const std::string& topic, const std::string& why) {
  const auto& env = db_.env();
  const auto now = env.now();
  env.counters->add("settle_relay_failures_total", {{"fault", "topic"}});
  auto [said, is_new] = told_.try_emplace(topic, now);
  if (is_new || now - said->second >= tell_again || now < said->second) {
    said->second = now;
    env.log->write(log_level::warning, "topic_unavailable",
                   {{"outbox", db_.name()}, {"topic", topic}, {"reason", why}});
  }
  return now + std::min<duration>(no_taker_wait, options_.retry_wait_max);
}

timestamp held_events::after_rejection(const message& m, std::int64_t attempts,
                                       const std::string& why) const {
  const auto& env = db_.env();
  const retry::policy by{{.longest = options_.retry_wait_max}, options_.attempts_max};
  const auto judged = retry::judge_rejection(by, attempts);
  const bool given_up = judged.give_up.has_value();
  env.counters->add("settle_relay_failures_total", {{"fault", "message"}});
  if (given_up) env.counters->add("settle_outbox_failed_total", {{"topic", m.topic}});
  env.log->write(given_up ? log_level::error : log_level::warning,
                 given_up ? "outbox_event_failed" : "outbox_event_rejected",
                 {{"outbox", db_.name()},
                  {"id", m.id},
                  {"topic", m.topic},
                  {"type", m.type},
                  {"key", m.key},
                  {"attempts", std::to_string(attempts)},
                  {"reason", why}});
  return given_up ? held_book::never : env.now() + judged.wait;
}

}  // namespace settle::outbox
