// One attempt at a batch: fence, claims, handlers and commit in one transaction.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/zoo.hpp"
#include "consume/charge.hpp"
#include "consume/engine.hpp"
#include "queries/consume.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

// Not a failure of the handler: it was made to stop.
bool is_stop(const error& e) { return e.code() == errc::ownership_lost || e.code() == errc::cancelled; }

bool is_storable(std::string_view text) { return is_utf8(text) && text.find('\0') == std::string_view::npos; }

bool has_storable_names(const message& m) {
  return is_storable(m.id) && is_storable(m.key) && is_storable(m.type) && is_storable(m.topic);
}

void make_storable(consume::work& one) {
  auto& m = one.content.content;
  for (auto* text : {&m.id, &m.key, &m.type, &m.topic}) *text = storable_text(*text, 3 * text->size());
  one.unfit = true;
}

// What stands in for the id of a message that has none: where it was delivered from.
std::string place_key(const delivery& of) {
  return "no id: " + of.fence.partition + "/" + std::to_string(of.tag.position);
}

// What the events of its handler inherit.
origin cause_of(const message& m) {
  const auto extension = [&](std::string_view name) {
    const auto found = m.extensions.find(name);
    return found == m.extensions.end() ? std::string() : found->second;
  };
  auto correlation = extension("correlationid");
  if (correlation.empty()) correlation = m.id;
  return {std::move(correlation), m.id, extension("traceparent"), extension("tracestate")};
}

}  // namespace

consumer::engine::dedup_keys consumer::engine::dedup_keys_of(batch messages) const {
  dedup_keys keys;
  keys.all.reserve(messages.size());
  keys.made.reserve(messages.size());  // so that the views of them stay valid
  const bool own_id = options_.key == dedup_key::message_id;
  for (const auto* one : messages) {
    const auto& m = one->what();
    const auto& wanted = own_id ? m.id : m.key;
    if (wanted.empty())
      keys.all.push_back(keys.made.emplace_back(place_key(one->content)));
    else
      keys.all.push_back(own_id ? std::string_view(m.id) : keys.made.emplace_back(m.key + "-" + m.type));
  }
  return keys;
}

// The consumer that a replay is for; empty: the message is none.
std::string_view consumer::engine::address_of(const message& m) const {
  const auto said = replay_address(m);
  const bool ours = said == options_.name;
  if (zoo::has(zoo::bug::replay_to_all_groups) && !ours) return {};
  if (zoo::has(zoo::bug::expiry_before_replay) && ours) return {};
  return said;
}

std::optional<consumer::engine::failure> consumer::engine::attempt(batch messages,
                                                                   const std::stop_token& cancel) {
  if (auto unfit = find_unfit(messages)) return unfit;
  std::vector<bool> unseen;  // zoo only: a look that the decision wrongly relies on
  if (zoo::has(zoo::bug::check_then_insert)) unseen = look_for_records(messages);
  const bool parked = messages[0]->parked.has_value();
  if (!parked) take_over(messages, cancel);
  consume::handler_watch::attempt watched(watch_, cancel);
  auto tx = db_.begin(watched.token());
  auto todo = parked ? take_parked(tx, messages) : claim(tx, messages);
  if (retention_.due()) retention_.expire(tx, 2);  // batches: faster than they come in
  if (zoo::has(zoo::bug::check_then_insert) && !parked)
    for (std::size_t i = 0; i < todo.what.size(); ++i)
      if (todo.what[i] == verdict::run || todo.what[i] == verdict::duplicate)
        todo.what[i] = unseen[i] ? verdict::run : verdict::duplicate;
  if (auto why = run_handlers(tx, messages, todo, watched)) {
    if (zoo::has(zoo::bug::claim_kept_after_failed_handler)) tx.commit("consumer.commit");
    return why;
  }
  given_up_.clear();
  write_down(tx, messages, todo);
  if (zoo::has(zoo::bug::ack_before_commit) && !parked) {
    std::vector<delivery_tag> tags;
    for (const auto* one : messages) tags.push_back(one->content.tag);
    subscription_->acknowledge(tags);
  }
  try {
    tx.post(queries::consume::keep_durable);
    tx.commit("consumer.commit");
  } catch (const error& e) {
    // Trouble of the store is an outage. Whether it has committed all the same, the claims will tell.
    if (is_stop(e)) throw;
    return failure{std::nullopt, describe(e, messages[0]->what())};
  }
  succeeded(messages, todo);
  return std::nullopt;
}

// A message that nobody can tell from another one, or that no database can hold, fails before it is claimed.
std::optional<consumer::engine::failure> consumer::engine::find_unfit(batch messages) const {
  const bool own_id = options_.key == dedup_key::message_id;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& one = *messages[i];
    const auto& m = one.what();
    if (one.charge || one.parked || !address_of(m).empty() || handlers_.of(m) == nullptr) continue;
    if ((own_id ? m.id : m.key).empty())
      return failure{
          i, describe(error(errc::message_id_missing, "a message of type " + m.type + " on " + m.topic), m)};
    if (!one.unfit && !has_storable_names(m)) make_storable(*messages[i]);
    if (one.unfit)
      return failure{i,
                     describe(error(errc::decode_failed, "its id, topic, type or key is not UTF-8 text"), m)};
  }
  return std::nullopt;
}

std::vector<bool> consumer::engine::look_for_records(batch messages) {
  std::vector<bool> unseen;
  auto look = db_.read();
  const auto keys = dedup_keys_of(messages);
  for (const auto& key : keys.all)
    unseen.push_back(look.execute(queries::consume::is_processed, {options_.name, key}).empty());
  return unseen;
}

// One that takes over from an owner that has not ended its work is careful with the first messages: one of
// them may have killed it.
void consumer::engine::take_over(batch messages, const std::stop_token& cancel) {
  for (const auto& partition : fences_.take_over(db_, consume::fence_keeper::of(messages), cancel)) {
    cautious_[partition] = options_.batch_max;
    env().log->write(log_level::warning, "cautious_mode",
                     {{"consumer", options_.name},
                      {"partition", partition},
                      {"messages", std::to_string(options_.batch_max)}});
  }
}

// Those that may run, in the order of their keys: two nodes with the same messages must not deadlock. On
// PostgreSQL one statement claims all that have topic and type in common.
std::vector<consumer::engine::claim_group> consumer::engine::claim_groups_of(
    batch messages, std::span<const std::string_view> keys) const {
  const auto shared = [&](std::size_t i) {
    const auto& m = messages[i]->what();
    return std::pair<std::string_view, std::string_view>(m.topic, m.type);
  };
  std::vector<std::size_t> order;
  order.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->what();
    if (handlers_.of(m) != nullptr && address_of(m).empty()) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(shared(i), keys[i], i); });
  std::vector<claim_group> groups;
  for (const auto i : order) {
    if (!claims_lists() || groups.empty() || shared(groups.back().front()) != shared(i))
      groups.emplace_back();
    groups.back().push_back(i);
  }
  return groups;
}

std::vector<parameters> consumer::engine::claims_of(batch messages, std::span<const std::string_view> keys,
                                                    std::span<const claim_group> groups) const {
  std::vector<parameters> rows;
  rows.reserve(groups.size());
  const auto now = env().now();
  for (const auto& group : groups) {
    const auto& m = messages[group.front()]->what();
    auto& row = rows.emplace_back();  // not from a list: that would copy each text twice
    row.reserve(5);
    row.emplace_back(options_.name);
    if (claims_lists()) {
      json_array wanted;
      for (const auto i : group) wanted.add(keys[i]);
      row.emplace_back(wanted.text());
    } else {
      row.emplace_back(keys[group.front()]);
    }
    row.emplace_back(m.topic);
    row.emplace_back(m.type);
    row.emplace_back(now);
  }
  return rows;
}

// Fences, claims, parked keys and horizons in one exchange. The fences come first: whoever takes a partition
// over waits for this batch there. Horizons come last: a record that went before its claim has moved them.
consumer::engine::plan consumer::engine::claim(transaction& tx, batch messages) {
  plan made{{}, dedup_keys_of(messages)};
  const std::span<const std::string_view> keys = made.keys.all;
  const auto groups = claim_groups_of(messages, keys);
  const auto claims = claims_of(messages, keys, groups);
  const auto held = consume::fence_keeper::of(messages);
  const auto wanted_fences = fences_.row_of(held);
  const parameters parked_row = parking_.keys_wanted(messages);
  const parameters horizon_row{options_.name};
  const std::array<repeated, 4> exchange{{{queries::consume::read_fences, {&wanted_fences, 1}},
                                          {queries::consume::claim, claims},
                                          {queries::consume::read_parked_keys, {&parked_row, 1}},
                                          {queries::consume::read_highest_horizons, {&horizon_row, 1}}}};
  const auto found = tx.execute_all(exchange);
  fences_.check(tx, held, found.front());
  made.what.assign(messages.size(), verdict::ignore);
  for (std::size_t n = 0; n < groups.size(); ++n) judge_claims(groups[n], found[n + 1], made);
  if (zoo::has(zoo::bug::ack_lost_twice))
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (made.what[i] == verdict::duplicate) tx.execute(queries::consume::forget, {options_.name, keys[i]});
  judge_fresh(tx, messages, {found.back(), found[found.size() - 2]}, made);
  take_replays(tx, messages, made);
  return made;
}

// Of two with one key in a batch the first has the claim.
void consumer::engine::judge_claims(const claim_group& group, const result& claimed, plan& of) {
  const bool all = claimed.affected() == std::ssize(group);
  std::set<std::string, std::less<>> fresh;
  if (!all)
    for (std::size_t i = 0; i < claimed.size(); ++i) fresh.insert(claimed[i][0].text());
  for (const auto i : group) {
    const auto found = fresh.find(of.keys.all[i]);
    of.what[i] = all || found != fresh.end() ? verdict::run : verdict::duplicate;
    if (found != fresh.end()) fresh.erase(found);
  }
}

// A message without a record runs, unless its record may have expired, it has already failed, or something of
// its key waits. Either way it has a record from now on.
void consumer::engine::judge_fresh(transaction& tx, batch messages, const looked_up& known, plan& of) {
  std::vector<consume::recorded> fresh;
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (of.what[i] != verdict::run) continue;
    const auto& one = messages[i]->content;
    fresh.push_back({&one, of.keys.all[i], consume::place_of(one)});
    index.push_back(i);
  }
  if (fresh.empty()) return;
  retention_.set_settled(subscription_->settled());
  const auto beyond = retention_.beyond_horizon(tx, known.horizons, fresh);
  std::set<consume::key_view> waiting;
  for (std::size_t i = 0; i < known.parked_keys.size(); ++i)
    waiting.emplace(known.parked_keys[i][0].text(), known.parked_keys[i][1].text());
  auto cautious = cautious_;
  for (std::size_t n = 0; n < fresh.size(); ++n) {
    auto& one = *messages[index[n]];
    const auto& m = one.what();
    auto& what = of.what[index[n]];
    auto& careful = cautious[one.content.fence.partition];
    if (beyond[n])
      what = verdict::beyond_horizon;
    else if (!m.key.empty() && waiting.contains({m.topic, m.key}) &&
             !zoo::has(zoo::bug::overtaking_a_parked_key))
      what = verdict::behind;
    else if (one.charge) {
      what = verdict::charge;
      one.judged = consume::judge(options_, one.charge->why, 1, one.charge->at, env().now());
    } else if (careful > 0)
      what = verdict::cautious;
    if (what == verdict::cautious) --careful;
    const bool holds =
        what == verdict::cautious ||
        (what == verdict::charge && (!one.given_up() || options_.on_exhausted == on_exhausted::block_key));
    if (holds && !m.key.empty()) waiting.emplace(m.topic, m.key);
  }
  retention_.note(tx, fresh);
}

// Dead letters that are sent again: to us, or past us.
void consumer::engine::take_replays(transaction& tx, batch messages, plan& of) const {
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

consumer::engine::plan consumer::engine::take_parked(transaction& tx, batch messages) {
  const auto taken = parking_.take(tx, messages);
  plan made;
  for (const bool ours : taken) made.what.push_back(ours ? verdict::run : verdict::gone);
  return made;
}

// Neighbours of one handler for whole batches go to it together.
std::optional<consumer::engine::failure> consumer::engine::run_handlers(
    transaction& tx, batch messages, const plan& of, consume::handler_watch::attempt& watched) {
  const auto started = env().now();
  std::int64_t ran = 0;
  for (std::size_t i = 0, next = 0; i < messages.size(); i = next) {
    next = i + 1;
    if (of.what[i] != verdict::run && of.what[i] != verdict::replay) continue;
    const auto& m = of.what[i] == verdict::replay ? of.letters.at(i).what : messages[i]->what();
    const auto* handler = handlers_.of(m);
    if (handler == nullptr && of.what[i] == verdict::replay)
      return failure{
          i, describe(handler_failed(failure_class::permanent, "there is no handler for " + m.type), m)};
    if (handler == nullptr) continue;  // it had one when it was parked
    std::vector<const message*> all{&m};
    if (handler->all)
      for (; next < messages.size() && of.what[next] == verdict::run &&
             handlers_.of(messages[next]->what()) == handler;
           ++next)
        all.push_back(&messages[next]->what());
    if (auto how = run(*handler, all, tx, watched))
      return failure{all.size() == 1 ? std::optional(i) : std::nullopt, std::move(*how)};
    ran += static_cast<std::int64_t>(all.size());
  }
  if (ran > 0) {
    const auto each = static_cast<double>((env().now() - started).count()) / static_cast<double>(ran);
    handler_us_ = handler_us_ == 0 ? each : 0.8 * handler_us_ + 0.2 * each;
  }
  return std::nullopt;
}

std::optional<failed_attempt> consumer::engine::run(const consume::handler& what,
                                                    std::span<const message* const> messages, transaction& tx,
                                                    consume::handler_watch::attempt& watched) {
  const auto& m = *messages[0];
  tx.set_cause(cause_of(m));
  std::optional<failed_attempt> failed;
  bool stopped = false;
  watched.handler_begins();
  try {
    with_fault_points(env(), "consumer.handler",
                      [&] { what.all ? what.all(messages, tx) : what.each(m, tx); });
    tx.end_part();
  } catch (const error& e) {
    failed = describe(e, m);
    stopped = is_stop(e);
  } catch (const std::exception& e) {
    failed = describe(e, m);
  } catch (...) {
    failed = failed_attempt{env().now(), failure_class::poison,
                            "the handler threw something that is not a std::exception"};
  }
  if (watched.handler_ends())
    return failed_attempt{env().now(), failure_class::poison, "the handler took longer than handler_timeout"};
  if (stopped) throw error(errc::cancelled, failed->error);
  return failed;
}

// What does not run is written, in the same transaction: where it waits, or that it was given up.
void consumer::engine::write_down(transaction& tx, batch messages, const plan& of) {
  std::vector<work*> ran;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& one = *messages[i];
    const auto& m = one.what();
    const auto& partition = one.content.fence.partition;
    switch (of.what[i]) {
      case verdict::run:
        if (one.parked) ran.push_back(&one);
        break;
      case verdict::charge:
        write_charge(tx, one, of.keys.all[i]);
        break;
      case verdict::behind:
        parking_.add(tx, {one, partition, of.keys.all[i]});
        break;
      case verdict::cautious:
        parking_.add(tx, {one, partition, of.keys.all[i], 0, 1});
        parking_.hold_key(tx, m, of.keys.all[i], env().now());
        expect_parked(env().now());
        break;
      case verdict::beyond_horizon:
        give_up(tx, beyond_horizon(one));
        break;
      case verdict::replay:
        if (!of.letters.at(i).blocks_key) break;
        parking_.go_on(tx, of.letters.at(i).what, "", env().now());
        expect_parked(env().now());
        break;
      case verdict::duplicate:
      case verdict::ignore:
      case verdict::others_replay:
      case verdict::gone:
        break;
    }
  }
  parking_.go_on(tx, ran, env().now());
}

// Nobody has tried it, and nobody waits for it.
dead_letter consumer::engine::beyond_horizon(const work& of) const {
  auto letter = letter_of(of, dead_letter_reason::beyond_dedup_horizon);
  letter.error =
      "it may have been applied long ago: it is a copy of a message whose record has expired. Replay it only "
      "if it "
      "has not";
  letter.blocks_key = false;
  return letter;
}

void consumer::engine::succeeded(batch messages, const plan& of) {
  std::map<verdict, std::int64_t> counted;
  std::int64_t given_up = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto what = of.what[i];
    ++counted[what];
    given_up += what == verdict::charge && messages[i]->given_up() ? 1 : 0;
    if (what == verdict::cautious) --cautious_[messages[i]->content.fence.partition];
    if (what != verdict::run && what != verdict::ignore) report_skipped(messages[i]->what(), what);
    done_.push_back(messages[i]);
  }
  if (counted[verdict::run] + counted[verdict::replay] > 0) {
    ++successes_;
    resume();
  }
  count("settle_consumer_applied_total", &consumer_counts::applied,
        counted[verdict::run] + counted[verdict::replay]);
  count("settle_consumer_duplicates_total", &consumer_counts::duplicates, counted[verdict::duplicate]);
  count("settle_consumer_beyond_horizon_total", &consumer_counts::beyond_horizon,
        counted[verdict::beyond_horizon]);
  count("settle_consumer_ignored_total", &consumer_counts::ignored, counted[verdict::ignore]);
  count("settle_consumer_parked_total", &consumer_counts::parked,
        counted[verdict::behind] + counted[verdict::cautious] + counted[verdict::charge] - given_up);
  report_given_up();
  count("settle_consumer_replays_total", &consumer_counts::replays, counted[verdict::replay]);
  count("settle_consumer_others_replays_total", &consumer_counts::others_replays,
        counted[verdict::others_replay]);
}

void consumer::engine::report_skipped(const message& m, verdict why) {
  const auto said = [&]() -> std::pair<log_level, std::string_view> {
    switch (why) {
      case verdict::duplicate:
        return {log_level::info, "duplicate_skipped"};
      case verdict::beyond_horizon:
        return {log_level::warning, "beyond_dedup_horizon"};
      case verdict::behind:
        return {log_level::info, "parked_behind"};
      case verdict::cautious:
        return {log_level::info, "parked_cautiously"};
      case verdict::replay:
        return {log_level::info, "replayed"};
      case verdict::others_replay:
        return {log_level::info, "replay_for_another"};
      default:
        return {log_level::debug, "settled"};
    }
  }();
  if (!may_log(said.first, said.second)) return;
  env().log->write(said.first, said.second,
                   {{"consumer", options_.name}, {"message_id", m.id}, {"type", m.type}, {"key", m.key}});
}

}  // namespace settle::inline v0
