#include "consume/parking.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/json.hpp"
#include "queries/consume.hpp"
#include "retry/history.hpp"
#include "wire/stored_message.hpp"

namespace settle::consume {
namespace {

constexpr std::int64_t first_keys = 128;     // that are read without asking which
constexpr std::size_t messages_per_key = 8;  // of read_due
constexpr duration elsewhere_for = std::chrono::seconds(1);
constexpr int batches_asked = 16;  // after one that found so many

std::string_view single_of(const message& m, std::string_view dedup) {
  return m.key.empty() ? dedup : std::string_view();
}

using full_key = std::tuple<std::string_view, std::string_view, std::string_view>;
full_key key_of(const work& of) { return {of.what().topic, of.what().key, of.parked->single}; }

std::string ids_of(std::span<work* const> messages) {
  json_array ids;
  for (const auto* one : messages) ids.add(one->parked->id);
  return ids.text();
}

}  // namespace

// Sorted, each once.
std::vector<key_view> parking::keys_of(std::span<work* const> messages) {
  std::vector<key_view> wanted;
  wanted.reserve(messages.size());
  for (const auto* one : messages)
    if (!one->what().key.empty()) wanted.emplace_back(one->what().topic, one->what().key);
  std::ranges::sort(wanted);
  const auto repeated = std::ranges::unique(wanted);
  wanted.erase(repeated.begin(), repeated.end());
  return wanted;
}

// To make a list of a batch's keys costs more than to read a few rows. On PostgreSQL a second look would cost
// a round trip, and the rows are locked in the order of the list.
statement parking::first_look(std::span<work* const> messages) const {
  if (speaks_ == dialect::postgres) {
    json_array keys;
    for (const auto& [topic, key] : keys_of(messages)) keys.add_all({topic, key});
    return {queries::consume::read_parked_keys, {consumer_, keys.text()}};
  }
  return {queries::consume::read_first_parked_keys, {consumer_, many_ > 0 ? 0 : first_keys}};
}

std::vector<result> parking::look(transaction& tx, result first, std::span<work* const> messages) {
  const bool asked = speaks_ == dialect::postgres || (many_ == 0 && std::ssize(first) < first_keys);
  std::vector<result> found;
  if (asked) {
    found.push_back(std::move(first));
    return found;
  }
  many_ = many_ == 0 ? batches_asked : many_ - 1;
  const auto wanted = keys_of(messages);
  for (auto from = wanted.begin(); from != wanted.end();) {
    const auto topic = from->first;
    json_array keys;
    for (; from != wanted.end() && from->first == topic; ++from) keys.add(from->second);
    found.push_back(tx.execute(queries::consume::read_parked_keys_of_topic, {consumer_, topic, keys.text()}));
  }
  return found;
}

void parking::end_stopped_holder(database& db, std::string_view topic, std::string_view key,
                                 duration too_long) const {
  const auto ended =
      db.read().execute(queries::consume::end_stopped_holder, {consumer_, topic, key, too_long.count()});
  for (std::size_t i = 0; i < ended.size(); ++i)
    db.env().log->write(
        log_level::warning, "stopped_holder_ended",
        {{"consumer", consumer_},
         {"topic", std::string(topic)},
         {"key", std::string(key)},
         {"backend", std::to_string(ended[i][queries::consume::end_stopped_holder_columns::pid].integer())}});
}

void parking::add(transaction& tx, const entry& what) const {
  const auto& m = what.of.what();
  std::optional<timestamp> failed;
  if (!what.history.empty()) failed = what.history.front().at;
  parameters row{consumer_,     m.topic,
                 m.key,         single_of(m, what.dedup),
                 what.attempts, what.starts,
                 value(failed), retry::history_text(what.history),
                 what.log,      what.of.content.at.text()};
  append_message(row, m);
  row.emplace_back(what.charged);
  tx.post(statement{queries::consume::park_message, std::move(row)});
}

void parking::hold_key(transaction& tx, const message& m, std::string_view dedup,
                       std::optional<timestamp> until) const {
  tx.post(queries::consume::park_key, {consumer_, m.topic, m.key, single_of(m, dedup), value(until)});
}

std::vector<work> parking::due(transaction& look, std::size_t most, timestamp now,
                               std::span<const subscribed> handled) const {
  const auto asked = most + messages_per_key * elsewhere_.size();
  parameters values{consumer_, now, static_cast<std::int64_t>(asked)};
  if (!handled.empty()) {
    json_array kinds;
    for (const auto& one : handled) kinds.add_all({one.topic, one.type});
    values.emplace_back(kinds.text());
  }
  const auto& text = handled.empty() ? queries::consume::read_due : queries::consume::read_due_of_kinds;
  auto rows = look.execute(statement{text, std::move(values)});
  namespace columns = queries::consume::read_due_columns;
  static_assert(columns::all == queries::consume::read_due_of_kinds_columns::all);
  std::vector<work> found;
  const auto is_elsewhere = [&](std::size_t i) {
    if (elsewhere_.empty()) return false;
    const auto known = elsewhere_.find({rows[i][columns::topic].text(), rows[i][columns::message_key].text(),
                                        rows[i][columns::single].text()});
    return known != elsewhere_.end() && now < known->second && known->second - now <= elsewhere_for;
  };
  for (std::size_t i = 0; i < rows.size() && found.size() < most; ++i) {
    if (is_elsewhere(i)) continue;
    work one;
    const auto row = rows[i];
    one.parked = parked_place{row[columns::id].integer(),
                              row[columns::single].text(),
                              row[columns::attempts].integer(),
                              row[columns::starts].integer(),
                              retry::read_history(row[columns::history].text()),
                              row[columns::log].text(),
                              row[columns::position].text(),
                              row[columns::first_failed_at].is_null()
                                  ? std::nullopt
                                  : std::optional(row[columns::first_failed_at].time()),
                              row[columns::charged].integer()};
    auto topic = row[columns::topic].text();
    auto key = row[columns::message_key].text();
    one.content.content = read_message(rows, i, columns::message_id);
    one.content.content.topic = std::move(topic);
    one.content.content.key = std::move(key);
    const bool suspect = one.parked->starts > 0;
    if (suspect && !found.empty()) break;
    found.push_back(std::move(one));
    if (suspect) break;
  }
  return found;
}

std::optional<retry_schedule::range> parking::later(transaction& look) const {
  const auto found = look.execute(queries::consume::read_next_due, {consumer_});
  namespace columns = queries::consume::read_next_due_columns;
  if (found[0][columns::earliest].is_null()) return std::nullopt;
  return retry_schedule::range{found[0][columns::earliest].time(), found[0][columns::latest].time()};
}

void parking::pull(transaction& tx, timestamp now, timestamp latest) const {
  tx.execute(queries::consume::pull_parked_keys, {consumer_, now, latest});
}

std::vector<bool> parking::lock(transaction& tx, std::span<work* const> messages) const {
  std::set<full_key> wanted;
  for (const auto* one : messages) wanted.insert(key_of(*one));
  json_array keys;
  for (const auto& [topic, key, single] : wanted) keys.add_all({topic, key, single});
  const auto rows = tx.execute(queries::consume::lock_parked_keys, {consumer_, keys.text()});
  namespace columns = queries::consume::lock_parked_keys_columns;
  std::set<full_key> ours;
  for (std::size_t i = 0; i < rows.size(); ++i)
    ours.emplace(rows[i][columns::topic].text(), rows[i][columns::message_key].text(),
                 rows[i][columns::single].text());
  std::vector<bool> locked;
  for (const auto* one : messages) locked.push_back(ours.contains(key_of(*one)));
  return locked;
}

std::vector<work*> parking::start(transaction& tx, std::span<work* const> messages, timestamp now) {
  const auto locked = lock(tx, messages);
  std::vector<work*> ours;
  std::erase_if(elsewhere_, [&](const auto& one) { return one.second <= now; });
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (locked[i]) {
      ours.push_back(messages[i]);
    } else {
      const auto& m = messages[i]->what();
      elsewhere_[{m.topic, m.key, messages[i]->parked->single}] = now + elsewhere_for;
    }
  }
  tx.post(queries::consume::start_parked, {ids_of(ours)});
  for (const auto* one : ours)
    tx.post(queries::consume::set_parked_key,
            {consumer_, one->what().topic, one->what().key, one->parked->single, now + announced_for});
  return ours;
}

std::vector<bool> parking::take(transaction& tx, std::span<work* const> messages) const {
  auto taken = lock(tx, messages);
  std::vector<parameters> rows;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (taken[i]) rows.push_back({messages[i]->parked->id});
  const auto gone = tx.execute_many(queries::consume::take_parked, rows);
  for (std::size_t i = 0, n = 0; i < messages.size(); ++i)
    if (taken[i]) taken[i] = gone[n++] == 1;
  return taken;
}

std::vector<bool> parking::keep(transaction& tx, std::span<work* const> messages) const {
  auto ours = lock(tx, messages);
  const auto rows = tx.execute(queries::consume::read_parked_attempts, {ids_of(messages)});
  std::map<std::int64_t, std::int64_t> attempts;
  namespace columns = queries::consume::read_parked_attempts_columns;
  for (std::size_t i = 0; i < rows.size(); ++i)
    attempts[rows[i][columns::id].integer()] = rows[i][columns::attempts].integer();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto found = attempts.find(messages[i]->parked->id);
    ours[i] = ours[i] && found != attempts.end() && found->second == messages[i]->parked->attempts;
  }
  return ours;
}

void parking::charge(transaction& tx, const work& of, const std::vector<failed_attempt>& history,
                     timestamp next) const {
  const auto& m = of.what();
  const auto failed = of.parked->failures().after(of.charge->why);
  tx.post(queries::consume::charge_parked,
          {of.parked->id, failed.attempts, retry::history_text(history),
           of.parked->first_failed_at.value_or(history.back().at), failed.charged});
  tx.post(queries::consume::set_parked_key, {consumer_, m.topic, m.key, of.parked->single, next});
}

void parking::give_up(transaction& tx, const work& of) const {
  tx.post(queries::consume::take_parked, {of.parked->id});
}

void parking::block_key(transaction& tx, const message& key_of) const {
  tx.post(queries::consume::set_parked_key, {consumer_, key_of.topic, key_of.key, "", value()});
}

statement parking::end_of(std::span<const std::int64_t> ids) {
  json_array all;
  for (const auto id : ids) all.add(id);
  return {queries::consume::end_parked, {all.text()}};
}

void parking::end(transaction& tx, std::span<const std::int64_t> ids) const {
  if (!ids.empty()) tx.post(end_of(ids));
}

void parking::go_on(transaction& tx, std::span<work* const> done, timestamp now) const {
  std::set<full_key> keys;
  for (const auto* one : done)
    if (keys.insert(key_of(*one)).second) go_on(tx, one->what(), one->parked->single, now);
}

void parking::go_on(transaction& tx, const message& key_of, std::string_view single, timestamp now) const {
  tx.post(queries::consume::go_on_with_parked_key, {consumer_, key_of.topic, key_of.key, single, now});
  tx.post(queries::consume::drop_parked_key, {consumer_, key_of.topic, key_of.key, single});
}

}  // namespace settle::consume
