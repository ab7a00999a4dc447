// One attempt at a batch: fence, claims, handlers and commit in one transaction.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/zoo.hpp"
#include "consume/engine.hpp"
#include "queries/consume.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

// The store's trouble, not the message's: the batch stays as it is, and nobody is charged.
bool blames_the_store(const error& e) {
  switch (e.code()) {
    case errc::store_busy:
    case errc::store_unavailable:
    case errc::store_full:
    case errc::store_corrupt:
    case errc::schema_missing:
    case errc::ownership_lost:
    case errc::cancelled:
      return true;
    default:
      return e.outcome_unknown();
  }
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

const consumer::raw_handler* consumer::engine::handler_of(const message& m) const {
  const auto topic = handlers_.find(m.topic);
  if (topic == handlers_.end()) return nullptr;
  auto found = topic->second.find(m.type);
  if (found == topic->second.end()) found = topic->second.find("");
  return found == topic->second.end() ? nullptr : &found->second;
}

consumer::engine::dedup_keys consumer::engine::dedup_keys_of(batch messages) const {
  dedup_keys keys;
  keys.all.reserve(messages.size());
  const bool own_id = options_.key == dedup_key::message_id;
  if (!own_id) keys.made.reserve(messages.size());  // so that the views of them stay valid
  for (const auto* one : messages) {
    const auto& m = one->content.content;
    keys.all.push_back(own_id          ? m.id
                       : m.key.empty() ? std::string_view()
                                       : keys.made.emplace_back(m.key + "-" + m.type));
  }
  return keys;
}

std::optional<consumer::engine::failure> consumer::engine::attempt(batch messages,
                                                                   const std::stop_token& cancel) {
  const auto keys = dedup_keys_of(messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->content.content;
    if (keys.all[i].empty() && handler_of(m) != nullptr)
      return failure{
          i, error(errc::message_id_missing, "a message of type " + m.type + " on " + m.topic).what()};
  }
  std::vector<bool> unseen;  // zoo only: a look that the decision wrongly relies on
  if (zoo::has(zoo::bug::check_then_insert)) {
    auto look = db_.read();
    for (const auto& key : keys.all)
      unseen.push_back(look.execute(queries::consume::is_processed, {options_.name, key}).empty());
  }
  fences_.take_over(db_, consume::fence_keeper::of(messages), cancel);
  auto tx = db_.begin(cancel);
  auto what = claim(tx, messages, keys.all);
  if (retention_.due()) retention_.expire(tx, 2);  // batches: faster than they come in
  if (zoo::has(zoo::bug::check_then_insert))
    for (std::size_t i = 0; i < what.size(); ++i)
      if (what[i] != verdict::ignore) what[i] = unseen[i] ? verdict::run : verdict::duplicate;
  if (auto why = run_handlers(tx, messages, what)) {
    if (zoo::has(zoo::bug::claim_kept_after_failed_handler)) tx.commit("consumer.commit");
    return why;
  }
  if (zoo::has(zoo::bug::ack_before_commit)) {
    std::vector<delivery_tag> tags;
    for (const auto* one : messages) tags.push_back(one->content.tag);
    subscription_->acknowledge(tags);
  }
  try {
    tx.post(queries::consume::keep_durable);
    tx.commit("consumer.commit");
  } catch (const error& e) {
    if (e.retryable() || blames_the_store(e)) throw;
    return failure{std::nullopt, e.what()};
  }
  succeeded(messages, what);
  return std::nullopt;
}

std::vector<parameters> consumer::engine::claims_of(batch messages, std::span<const std::string_view> keys,
                                                    std::span<const std::size_t> order) const {
  std::vector<parameters> rows;
  rows.reserve(order.size());
  const auto now = env().now();
  for (const auto i : order) {
    const auto& m = messages[i]->content.content;
    auto& row = rows.emplace_back();  // not from a list: that would copy each text twice
    row.reserve(5);
    row.emplace_back(options_.name);
    row.emplace_back(keys[i]);
    row.emplace_back(m.topic);
    row.emplace_back(m.type);
    row.emplace_back(now);
  }
  return rows;
}

// Fences, claims and horizons in one exchange. The fences come first: whoever takes a partition over waits
// for this batch there. Horizons come last: a record that went before its claim has moved them.
consumer::engine::verdicts consumer::engine::claim(transaction& tx, batch messages,
                                                   std::span<const std::string_view> keys) {
  std::vector<std::size_t>
      order;  // that of the keys, so that two nodes with the same messages cannot deadlock
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (handler_of(messages[i]->content.content) != nullptr) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(keys[i], i); });
  const auto claims = claims_of(messages, keys, order);
  const auto held = consume::fence_keeper::of(messages);
  const auto fence_row = fences_.row_of(held);
  const parameters horizon_row{options_.name};
  const std::array<repeated, 3> exchange{{{queries::consume::read_fences, {&fence_row, 1}},
                                          {queries::consume::claim, claims},
                                          {queries::consume::read_highest_horizons, {&horizon_row, 1}}}};
  const auto found = tx.execute_all(exchange);
  fences_.check(tx, held, found.front());
  const auto claimed = std::span(found).subspan(1, order.size());
  verdicts all(messages.size(), verdict::ignore);
  for (std::size_t n = 0; n < order.size(); ++n)
    all[order[n]] = claimed[n].affected() == 1 ? verdict::run : verdict::duplicate;
  if (zoo::has(zoo::bug::ack_lost_twice))
    for (std::size_t n = 0; n < order.size(); ++n)
      if (claimed[n].affected() == 0) tx.execute(queries::consume::forget, {options_.name, keys[order[n]]});
  judge_fresh(tx, messages, {keys, found.back()}, all);
  return all;
}

// A message without a record runs, unless its record may have expired. Either way it has a record from now
// on.
void consumer::engine::judge_fresh(transaction& tx, batch messages, const looked_up& known, verdicts& all) {
  std::vector<consume::recorded> fresh;
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (all[i] != verdict::run) continue;
    const auto& one = messages[i]->content;
    fresh.push_back({&one, known.keys[i], consume::place_of(one)});
    index.push_back(i);
  }
  if (fresh.empty()) return;
  retention_.set_settled(subscription_->settled());
  const auto beyond = retention_.beyond_horizon(tx, known.horizons, fresh);
  for (std::size_t n = 0; n < fresh.size(); ++n)
    if (beyond[n]) all[index[n]] = verdict::beyond_horizon;
  retention_.note(tx, fresh);
}

std::optional<consumer::engine::failure> consumer::engine::run_handlers(transaction& tx, batch messages,
                                                                        const verdicts& what) {
  const auto started = env().now();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->content.content;
    if (what[i] != verdict::run) continue;
    const auto* handler = handler_of(m);
    tx.set_cause(cause_of(m));
    try {
      with_fault_points(env(), "consumer.handler", [&] { (*handler)(m, tx); });
      tx.end_part();
    } catch (const error& e) {
      if (blames_the_store(e)) throw;
      return failure{i, e.what()};
    } catch (const std::exception& e) {
      return failure{i, e.what()};
    } catch (...) {
      return failure{i, "the handler threw something that is not a std::exception"};
    }
  }
  const auto ran = std::ranges::count(what, verdict::run);
  if (ran > 0) {
    const auto each = static_cast<double>((env().now() - started).count()) / static_cast<double>(ran);
    handler_us_ = handler_us_ == 0 ? each : 0.8 * handler_us_ + 0.2 * each;
  }
  return std::nullopt;
}

void consumer::engine::succeeded(batch messages, const verdicts& what) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (what[i] == verdict::duplicate || what[i] == verdict::beyond_horizon)
      report_skipped(messages[i]->content.content, what[i]);
    inbox_.succeeded(*messages[i]);
    done_.push_back(messages[i]);
  }
  const auto applied = std::ranges::count(what, verdict::run);
  const auto duplicates = std::ranges::count(what, verdict::duplicate);
  const auto beyond = std::ranges::count(what, verdict::beyond_horizon);
  const auto ignored = std::ranges::count(what, verdict::ignore);
  {
    const std::scoped_lock lock(counts_mutex_);
    counts_.applied += applied;
    counts_.duplicates += duplicates;
    counts_.beyond_horizon += beyond;
    counts_.ignored += ignored;
  }
  env().counters->add("settle_consumer_applied_total", {{"consumer", options_.name}}, applied);
  env().counters->add("settle_consumer_duplicates_total", {{"consumer", options_.name}}, duplicates);
  env().counters->add("settle_consumer_beyond_horizon_total", {{"consumer", options_.name}}, beyond);
  env().counters->add("settle_consumer_ignored_total", {{"consumer", options_.name}}, ignored);
}

void consumer::engine::report_skipped(const message& m, verdict why) {
  const bool duplicate = why == verdict::duplicate;
  const auto level = duplicate ? log_level::info : log_level::warning;
  if (!env().log->enabled(level)) return;
  env().log->write(level, duplicate ? "duplicate_skipped" : "beyond_dedup_horizon",
                   {{"consumer", options_.name}, {"message_id", m.id}, {"type", m.type}, {"key", m.key}});
}

}  // namespace settle::inline v0
