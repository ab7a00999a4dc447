#include "consume/claims.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "dead_letter/shared.hpp"
#include "queries/consume.hpp"

namespace settle::consume {
namespace {

constexpr duration held_wait = std::chrono::milliseconds(100);  // before a key is asked for again
constexpr int batches_listed = 16;  // after one with duplicates: more of them are likely to follow

// The three looks at parked keys are read alike.
namespace parked_columns = queries::consume::read_parked_keys_columns;
static_assert(queries::consume::read_first_parked_keys_columns::all ==
              queries::consume::read_parked_keys_of_topic_columns::all);
static_assert(parked_columns::all.starts_with(queries::consume::read_first_parked_keys_columns::all));

key_view parked_key_of(const result::row& row) {
  return {row[parked_columns::topic].text(), row[parked_columns::message_key].text()};
}

value list_of(std::span<const recorded> fresh, dialect of) {
  std::vector<std::string_view> keys;
  keys.reserve(fresh.size());
  for (const auto& one : fresh) keys.push_back(one.key);
  return list_of_keys(keys, of);
}

}  // namespace

// The fences come first: whoever takes a partition over waits for this batch there. Horizons come last: a
// record that went before its claim has moved them.
std::optional<claimed_batch> claims::claim(transaction& tx, batch messages, const subscription& deliveries) {
  claimed_batch made;
  made.keys = dedup_keys_of(messages, from_.options.key, from_.fences);
  const std::span<const std::string_view> keys = made.keys.all;
  const auto groups = claim_groups_of(messages, keys, to_claim(messages));
  auto rows = rows_of(messages, keys, groups);
  const auto held = from_.fences.of(messages);
  const auto wanted_fences = from_.fences.row_of(held);
  const auto parked = from_.parking.first_look(messages);
  const parameters horizon_row{from_.options.name};
  const bool list = from_.db.speaks() == dialect::sqlite && list_ > 0;
  const std::array<repeated, 4> exchange{
      {{queries::consume::read_fences, {&wanted_fences, 1}},
       {list ? queries::consume::claim_and_list : queries::consume::claim, rows},
       {parked.text, {&parked.values, 1}},
       {queries::consume::read_highest_horizons, {&horizon_row, 1}}}};
  auto found = tx.execute_all(exchange);
  from_.fences.check(tx, held, found.front());
  made.what.assign(messages.size(), verdict::ignore);
  if (list) --list_;
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (judge_claims(groups[n], keys, found[n + 1], made.what)) continue;
    SETTLE_CHECK(!list, "claims that were asked for are told");
    list_ = batches_listed;
    return std::nullopt;
  }
  from_.moments.after_the_claims(tx, keys, made);
  const auto waiting = from_.parking.look(tx, std::move(found[found.size() - 2]), messages);
  made.put_off = put_off_held(messages, waiting);
  if (!made.put_off.empty()) return made;
  judge_fresh(tx, messages, {found.back(), waiting, deliveries}, made);
  const bool all = groups.size() == 1 && found[1].affected() == std::ssize(groups[0]);
  made.fresh_keys = all ? std::move(rows.front().at(1)) : list_of(made.fresh, from_.db.speaks());
  take_replays(tx, messages, made);
  return made;
}

// Those that may run; replays have claims of their own.
std::vector<std::size_t> claims::to_claim(batch messages) const {
  std::vector<std::size_t> wanted;
  wanted.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->what();
    if (from_.handlers.of(m) != nullptr && addressed_to(m, from_.options.name).empty()) wanted.push_back(i);
  }
  return wanted;
}

std::vector<parameters> claims::rows_of(batch messages, std::span<const std::string_view> keys,
                                        std::span<const claim_group> groups) const {
  std::vector<parameters> rows;
  rows.reserve(groups.size());
  const auto now = from_.db.env().now();
  std::vector<std::string_view> wanted;
  for (const auto& group : groups) {
    const auto& m = messages[group.front()]->what();
    wanted.clear();
    wanted.reserve(group.size());
    for (const auto i : group) wanted.push_back(keys[i]);
    auto& row = rows.emplace_back();  // not from a list: that would copy each text twice
    row.reserve(5);
    row.emplace_back(from_.options.name);
    row.push_back(list_of_keys(wanted, from_.db.speaks()));
    row.emplace_back(m.topic);
    row.emplace_back(m.type);
    row.emplace_back(now);
  }
  return rows;
}

// Another process works on a parked message of their keys, or adds to them. It is not waited for: its handler
// may take long, or hang, and everybody else would stand still.
std::vector<work*> claims::put_off_held(batch messages, std::span<const result> parked_keys) {
  std::set<key_view> held;
  for (const auto& rows : parked_keys)
    for (std::size_t i = 0; from_.db.speaks() == dialect::postgres && i < rows.size(); ++i)
      if (rows[i][parked_columns::is_elsewhere].integer() != 0) held.insert(parked_key_of(rows[i]));
  if (held.empty() && held_.none_known()) return {};
  const auto now = from_.db.env().now();
  auto theirs = held_.note(messages, held, now);
  from_.inbox.put_off(theirs, now + held_wait);
  return theirs;
}

// Whatever becomes of a message without a record: it has one from now on.
void claims::judge_fresh(transaction& tx, batch messages, const looked_up& known, claimed_batch& of) const {
  std::vector<std::size_t> places;
  of.fresh.reserve(messages.size());
  places.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (of.what[i] != verdict::run) continue;
    const auto& one = messages[i]->content;
    of.fresh.push_back({&one, of.keys.all[i], place_of(one, from_.fences.log_of(*messages[i]))});
    places.push_back(i);
  }
  if (places.empty()) return;
  from_.retention.set_settled(known.deliveries.settled());
  facts facts{from_.retention.beyond_horizon(tx, known.horizons, of.fresh), {}, from_.careful};
  for (const auto& rows : known.parked_keys)
    for (std::size_t i = 0; i < rows.size(); ++i) facts.waiting.insert(parked_key_of(rows[i]));
  of.plan::judge_fresh(messages, places, std::move(facts), {from_.options, from_.db.env().now()});
}

// Dead letters that are sent again: to us, or past us.
void claims::take_replays(transaction& tx, batch messages, claimed_batch& of) const {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->what();
    const auto to = addressed_to(m, from_.options.name);
    if (to.empty()) continue;
    if (to != from_.options.name) {
      of.what[i] = verdict::others_replay;
    } else if (messages[i]->charge) {
      of.what[i] = verdict::charge;
    } else if (auto letter = take_replay(tx, m)) {
      of.what[i] = verdict::replay;
      of.letters.emplace(i, std::move(*letter));
    } else {
      of.what[i] = verdict::duplicate;
    }
  }
}

void claims::give_back(transaction& tx, batch messages, claimed_batch& of) const {
  std::vector<parameters> rows;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (of.what[i] == verdict::left_out) {
      rows.push_back({from_.options.name, of.keys.all[i]});
      std::erase_if(of.fresh, [&](const auto& one) { return one.what == &messages[i]->content; });
    }
  if (rows.empty()) return;
  tx.execute_many(queries::consume::give_claim_back, rows);
  of.fresh_keys = list_of(of.fresh, from_.db.speaks());
}

// A handler of theirs would have been stopped by now.
void claims::end_stopped_holders() {
  const auto too_long = from_.options.handler_timeout + from_.options.takeover_wait;
  held_.for_overdue(from_.db.env().now(), too_long, [&](std::string_view topic, std::string_view key) {
    from_.parking.end_stopped_holder(from_.db, topic, key, too_long);
  });
}

}  // namespace settle::consume
