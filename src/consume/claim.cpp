// Which messages of a batch run: those whose claims are new, unless something else speaks against it.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "consume/engine.hpp"
#include "dead_letter/shared.hpp"
#include "queries/consume.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration held_wait = std::chrono::milliseconds(100);  // before a key is asked for again
constexpr int batches_listed = 16;  // after one with duplicates: more of them are likely to follow

// The three looks at parked keys are read alike.
namespace parked_columns = queries::consume::read_parked_keys_columns;
static_assert(queries::consume::read_first_parked_keys_columns::all ==
              queries::consume::read_parked_keys_of_topic_columns::all);
static_assert(parked_columns::all.starts_with(queries::consume::read_first_parked_keys_columns::all));

consume::key_view parked_key_of(const result::row& row) {
  return {row[parked_columns::topic].text(), row[parked_columns::message_key].text()};
}

value list_of(std::span<const consume::recorded> fresh, dialect of) {
  std::vector<std::string_view> keys;
  keys.reserve(fresh.size());
  for (const auto& one : fresh) keys.push_back(one.key);
  return consume::list_of_keys(keys, of);
}

}  // namespace

// Those that may run; one statement claims all that have topic and type in common. In the order of their
// keys: two nodes with the same messages must not deadlock. As a rule they come in that order.
std::vector<consumer::engine::claim_group> consumer::engine::claim_groups_of(
    batch messages, std::span<const std::string_view> keys) const {
  const auto shared = [&](std::size_t i) {
    const auto& m = messages[i]->what();
    return std::pair<std::string_view, std::string_view>(m.topic, m.type);
  };
  claim_group order;
  order.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->what();
    if (handlers_.of(m) != nullptr && address_of(m).empty()) order.push_back(i);
  }
  if (order.empty()) return {};
  const auto by_key = [&](std::size_t i) { return std::pair(keys[i], i); };
  if (std::ranges::all_of(order, [&](std::size_t i) { return shared(i) == shared(order.front()); })) {
    if (!std::ranges::is_sorted(order, {}, by_key)) std::ranges::sort(order, {}, by_key);
    return {std::move(order)};
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(shared(i), by_key(i)); });
  std::vector<claim_group> groups;
  for (const auto i : order) {
    if (groups.empty() || shared(groups.back().front()) != shared(i)) groups.emplace_back();
    groups.back().push_back(i);
  }
  return groups;
}

std::vector<parameters> consumer::engine::claims_of(batch messages, std::span<const std::string_view> keys,
                                                    std::span<const claim_group> groups) const {
  std::vector<parameters> rows;
  rows.reserve(groups.size());
  const auto now = env().now();
  std::vector<std::string_view> wanted;
  for (const auto& group : groups) {
    const auto& m = messages[group.front()]->what();
    wanted.clear();
    wanted.reserve(group.size());
    for (const auto i : group) wanted.push_back(keys[i]);
    auto& row = rows.emplace_back();  // not from a list: that would copy each text twice
    row.reserve(5);
    row.emplace_back(options_.name);
    row.push_back(consume::list_of_keys(wanted, db_.speaks()));
    row.emplace_back(m.topic);
    row.emplace_back(m.type);
    row.emplace_back(now);
  }
  return rows;
}

// Fences, claims, parked keys and horizons in one exchange. The fences come first: whoever takes a partition
// over waits for this batch there. Horizons come last: a record that went before its claim has moved them.
//
// Nothing if some claims of a group are new, and the statement has not said which: then the transaction has
// to be rolled back, and the next one asks for it.
std::optional<consume::claimed_batch> consumer::engine::claim(transaction& tx, batch messages) {
  claimed_batch made;
  made.keys = consume::dedup_keys_of(messages, options_.key, fences_);
  const std::span<const std::string_view> keys = made.keys.all;
  const auto groups = claim_groups_of(messages, keys);
  auto claims = claims_of(messages, keys, groups);
  const auto held = fences_.of(messages);
  const auto wanted_fences = fences_.row_of(held);
  const auto parked = parking_.first_look(messages);
  const parameters horizon_row{options_.name};
  const bool list = db_.speaks() == dialect::sqlite && list_claims_ > 0;
  const std::array<repeated, 4> exchange{
      {{queries::consume::read_fences, {&wanted_fences, 1}},
       {list ? queries::consume::claim_and_list : queries::consume::claim, claims},
       {parked.text, {&parked.values, 1}},
       {queries::consume::read_highest_horizons, {&horizon_row, 1}}}};
  auto found = tx.execute_all(exchange);
  fences_.check(tx, held, found.front());
  made.what.assign(messages.size(), verdict::ignore);
  if (list) --list_claims_;
  for (std::size_t n = 0; n < groups.size(); ++n) {
    if (judge_claims(groups[n], found[n + 1], made)) continue;
    SETTLE_CHECK(!list, "claims that were asked for are told");
    list_claims_ = batches_listed;
    return std::nullopt;
  }
  moments_.after_the_claims(tx, keys, made);
  const auto waiting = parking_.look(tx, std::move(found[found.size() - 2]), messages);
  made.put_off = put_off_held(messages, waiting);
  if (!made.put_off.empty()) return made;
  judge_fresh(tx, messages, {found.back(), waiting}, made);
  const bool all = groups.size() == 1 && found[1].affected() == std::ssize(groups[0]);
  made.fresh_keys = all ? std::move(claims.front().at(1)) : list_of(made.fresh, db_.speaks());
  take_replays(tx, messages, made);
  return made;
}

// Of two with one key in a batch the first has the claim. False: it is not known which are new.
bool consumer::engine::judge_claims(const claim_group& group, const result& claimed, claimed_batch& of) {
  const bool all = claimed.affected() == std::ssize(group);
  if (!all && claimed.affected() > 0 && claimed.empty()) return false;
  std::set<std::string, std::less<>> fresh;
  if (!all)
    for (std::size_t i = 0; i < claimed.size(); ++i)
      fresh.insert(claimed[i][queries::consume::claim_columns::message_id].text());
  for (const auto i : group) {
    const auto found = fresh.find(of.keys.all[i]);
    of.what[i] = all || found != fresh.end() ? verdict::run : verdict::duplicate;
    if (found != fresh.end()) fresh.erase(found);
  }
  return true;
}

// Another process works on a parked message of their keys, or adds to them. It is not waited for: its handler
// may take long, or hang, and everybody else would stand still.
std::vector<consume::work*> consumer::engine::put_off_held(batch messages,
                                                           std::span<const result> parked_keys) {
  std::set<consume::key_view> held;
  for (const auto& rows : parked_keys)
    for (std::size_t i = 0; db_.speaks() == dialect::postgres && i < rows.size(); ++i)
      if (rows[i][parked_columns::is_elsewhere].integer() != 0) held.insert(parked_key_of(rows[i]));
  if (held.empty() && held_elsewhere_.empty()) return {};
  std::vector<work*> theirs;
  const auto now = env().now();
  for (auto* one : messages) {
    const consume::key_view key(one->what().topic, one->what().key);
    if (held.contains(key)) {
      theirs.push_back(one);
      held_elsewhere_.try_emplace({std::string(key.first), std::string(key.second)}, now);
    } else {
      held_elsewhere_.erase({std::string(key.first), std::string(key.second)});
    }
  }
  inbox_.put_off(theirs, now + held_wait);
  return theirs;
}

// Whatever becomes of a message without a record: it has one from now on.
void consumer::engine::judge_fresh(transaction& tx, batch messages, const looked_up& known,
                                   claimed_batch& of) {
  std::vector<std::size_t> places;
  of.fresh.reserve(messages.size());
  places.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (of.what[i] != verdict::run) continue;
    const auto& one = messages[i]->content;
    of.fresh.push_back({&one, of.keys.all[i], consume::place_of(one, fences_.log_of(*messages[i]))});
    places.push_back(i);
  }
  if (places.empty()) return;
  retention_.set_settled(intake_.from().settled());
  consume::facts facts{retention_.beyond_horizon(tx, known.horizons, of.fresh), {}, caution_};
  for (const auto& rows : known.parked_keys)
    for (std::size_t i = 0; i < rows.size(); ++i) facts.waiting.insert(parked_key_of(rows[i]));
  of.plan::judge_fresh(messages, places, std::move(facts), {options_, env().now()});
}

// Of those that are left out. As if they had not been in the batch.
void consumer::engine::give_claims_back(transaction& tx, batch messages, claimed_batch& of) const {
  std::vector<parameters> rows;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (of.what[i] == verdict::left_out) {
      rows.push_back({options_.name, of.keys.all[i]});
      std::erase_if(of.fresh, [&](const auto& one) { return one.what == &messages[i]->content; });
    }
  if (rows.empty()) return;
  tx.execute_many(queries::consume::give_claim_back, rows);
  of.fresh_keys = list_of(of.fresh, db_.speaks());
}

// Dead letters that are sent again: to us, or past us.
void consumer::engine::take_replays(transaction& tx, batch messages, claimed_batch& of) const {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->what();
    const auto to = address_of(m);
    if (to.empty()) continue;
    if (to != options_.name) {
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

}  // namespace settle::inline v0
