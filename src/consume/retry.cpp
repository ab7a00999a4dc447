// Parked messages: announced, tried, and what became of it written down.
#include <algorithm>
#include <tuple>

#include "consume/engine.hpp"
#include "retry/crashes.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
// Those that are due and have a handler. Another version of this consumer has parked the others: they are
// left to it, and later ones of their keys with them.
std::vector<consume::work> consumer::engine::due_and_handled(transaction& look, timestamp now) {
  const auto kinds = handlers_.all();
  for (;;) {
    auto due =
        parking_.due(look, runner_.batch_limit(), now, others_park_ ? kinds : std::vector<subscribed>());
    std::set<std::tuple<std::string, std::string, std::string>> left;
    const auto gone = std::erase_if(due, [&](const work& one) {
      const std::tuple key(one.what().topic, one.what().key, one.parked->single);
      if (handlers_.of(one.what()) == nullptr && left.insert(key).second) report_.unhandled(one.what());
      return left.contains(key);
    });
    if (gone == 0 || others_park_) return due;
    others_park_ = true;  // from now on they are not even read
  }
}

// If none is due, the schedule learns when to look next.
std::vector<consume::work> consumer::engine::look_for_parked(transaction& look, timestamp now) {
  schedule_.looking(now);
  auto due = due_and_handled(look, now);
  if (due.empty()) schedule_.found_none(now, parking_.later(look));
  return due;
}

void consumer::engine::pull_parked(transaction& tx, timestamp now) {
  parking_.pull(tx, now, schedule_.latest(now));
  schedule_.pulled(now);
}

// Under load they are announced by the next batch's transaction, which commits anyway, and run right after
// it. Not if the batch had to be split: other handlers run then, and if one of them kills the process, those
// that were announced would be suspected.
bool consumer::engine::retry_parked(const std::stop_token& cancel) {
  if (!announced_.messages.empty()) return run_announced(cancel);
  const auto now = env().now();
  if (schedule_.ask(now, inbox_.size() > 0) != consume::retry_schedule::look::now) return false;
  std::vector<work> due;
  {
    auto look = db_.read();
    due = look_for_parked(look, now);
  }
  if (due.empty() && !schedule_.somebody_waits_too_long()) return false;
  auto tx = db_.begin(cancel);
  if (schedule_.somebody_waits_too_long()) pull_parked(tx, now);
  auto announced = announce(tx, std::move(due), now);
  try {
    tx.commit("consumer.announce");
  } catch (const error& e) {
    if (e.outcome_unknown()) will_not_run(announced);
    throw;
  }
  is_announced(std::move(announced));
  return run_announced(cancel);
}

// In the transaction of a batch, and before its handlers: what fails here is not their fault.
consumer::engine::announcement consumer::engine::announce_due(transaction& tx) {
  const auto now = env().now();
  auto due = look_for_parked(tx, now);
  if (schedule_.somebody_waits_too_long()) pull_parked(tx, now);
  return announce(tx, std::move(due), now);
}

consumer::engine::announcement consumer::engine::announce(transaction& tx, std::vector<work> due,
                                                          timestamp now) {
  announcement made{{}, now};
  if (due.empty()) return made;
  if (!unended_.empty()) {
    parking_.end(tx, unended_);
    for (auto& one : due)
      if (one.parked->starts > 0 && std::ranges::find(unended_, one.parked->id) != unended_.end())
        --one.parked->starts;
    made.ends_unended = true;
  }
  std::vector<work*> all;
  for (auto& one : due) all.push_back(&one);
  const auto ours = parking_.start(tx, all, now);
  if (ours.empty()) schedule_.all_elsewhere(now);
  for (auto* one : ours) made.messages.push_back(std::move(*one));
  return made;
}

// It has committed.
void consumer::engine::is_announced(announcement made) {
  schedule_.announced(made.at, made.messages.size());
  if (made.ends_unended) unended_.clear();
  announced_ = std::move(made);
}

// It may have committed. Nobody has died over them, so that is taken back later.
void consumer::engine::will_not_run(const announcement& made) {
  for (const auto& one : made.messages) unended_.push_back(one.parked->id);
}

bool consumer::engine::run_announced(const std::stop_token& cancel) {
  auto all = std::exchange(announced_, {});
  if (all.messages.empty()) return false;
  std::vector<work*> ours;
  for (auto& one : all.messages) ours.push_back(&one);
  try {
    done_.clear();
    const auto enough = all.at + consume::announced_for / 2;
    if (env().now() >= enough) schedule_.came_too_late();
    if (!retry::has_crashed_enough(ours[0]->parked->starts)) try_parked(ours, enough, cancel);
    const auto done = std::exchange(done_, {});
    std::vector<work*> rest;
    for (auto* one : ours)
      if (std::ranges::find(done, one) == done.end()) rest.push_back(one);
    settle_parked(rest, cancel);
  } catch (...) {
    done_.clear();
    will_not_run(all);
    throw;
  }
  return true;
}

// Others must not take those for abandoned that are still to come, so none begins after `enough`.
void consumer::engine::try_parked(batch messages, timestamp enough, const std::stop_token& cancel) {
  std::set<consume::key_view> not_done;
  const auto needs_all = alone();
  for (std::size_t at = 0, next = 0; at < messages.size() && env().now() < enough; at = next) {
    std::vector<work*> chunk;
    for (next = at; next < messages.size() && next - at < schedule_.together(); ++next) {
      const auto& m = messages[next]->what();
      if (next > at && (needs_all(m) || needs_all(messages[at]->what()))) break;
      if (m.key.empty() || !not_done.contains({m.topic, m.key})) chunk.push_back(messages[next]);
    }
    if (chunk.empty()) continue;
    env().counters->add("settle_consumer_retries_total", {{"consumer", options_.name}}, std::ssize(chunk));
    apply(chunk, cancel);
    schedule_.tried(std::ranges::none_of(chunk, [](const work* one) { return one->charge.has_value(); }));
    for (const auto* one : chunk) {
      // Also one that somebody else holds: those behind it must not get past it.
      if (!is_done(*one)) not_done.emplace(one->what().topic, one->what().key);
    }
  }
}

// Those that have failed, and those that did not run: they wait behind one that has failed, or time was up.
void consumer::engine::settle_parked(batch messages, const std::stop_token& cancel) {
  if (messages.empty()) return;
  charges_.begin();
  auto tx = db_.begin(cancel);
  const auto ours = parking_.keep(tx, messages);  // we may have slept, and others taken them over
  std::vector<std::int64_t> not_run;
  std::set<consume::key_view> failed;  // or not ours any more: others say when their keys go on
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& one = *messages[i];
    if (!ours[i]) {
      unended_.push_back(one.parked->id);
      failed.emplace(one.what().topic, one.what().key);
      continue;
    }
    if (retry::has_crashed_enough(one.parked->starts) && !one.charge)
      one.charge = retry::charge_for_crashes(one.parked->starts, env().now());
    if (one.charge) {
      charges_.write_parked(tx, one);
      failed.emplace(one.what().topic, one.what().key);
    } else {
      not_run.push_back(one.parked->id);
      if (one.what().key.empty() || !failed.contains({one.what().topic, one.what().key}))
        parking_.go_on(tx, one.what(), one.parked->single, env().now());
    }
  }
  parking_.end(tx, not_run);
  tx.commit("consumer.charge");
  report_.given_up(charges_.take_given_up());
}

}  // namespace settle::inline v0
