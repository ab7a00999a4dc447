// Parked messages: announced, tried, and what became of it written down.
#include <algorithm>

#include "consume/engine.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t worth_a_look = 8;  // parked messages: each look that finds some commits twice

}  // namespace

// So that it need not be asked for while there is other work.
void consumer::engine::expect_parked(timestamp due) { parked_look_ = std::min(parked_look_, due); }

std::vector<consume::work> consumer::engine::look_for_parked(timestamp now) {
  std::optional<consume::parking::range> later;
  {
    auto look = db_.read();
    parked_look_ = now;
    auto due = parking_.due(look, batch_limit(), now);
    if (!due.empty()) return due;
    later = parking_.later(look);
  }
  const auto next = later ? later->first : timestamp::max();
  parked_look_ = std::clamp<timestamp>(next, now + duration(1), now + options_.idle_poll);
  const auto latest = now + 2 * options_.retry_wait_max + consume::announced_for;
  if (later && later->last > latest) {
    auto tx = db_.begin();
    parking_.pull(tx, now, latest);
    tx.commit("consumer.pull");
    parked_look_ = now;
  }
  return {};
}

// Others may park messages too, so there is a look now and then in any case. Under load, those that come due
// shortly after each other go together, a tenth of retry_wait later at most.
bool consumer::engine::retry_parked(const std::stop_token& cancel) {
  const auto now = env().now();
  const bool clock_set_back = parked_look_ - now > options_.idle_poll;
  if (now < parked_look_ && !clock_set_back) return false;
  const duration gather = options_.retry_wait / 10;
  if (inbox_.size() > 0 && now < gather_until_ && gather_until_ - now <= gather) return false;
  auto due = look_for_parked(now);
  gather_until_ = due.size() < worth_a_look ? now + gather : now;
  if (due.empty()) return false;
  std::vector<work*> all;
  for (auto& one : due) all.push_back(&one);
  try {
    const auto ours = announce(all, cancel);
    if (ours.empty()) {  // somebody else is at it
      parked_look_ = now + options_.retry_wait;
      return false;
    }
    done_.clear();
    if (ours[0]->parked->starts < consume::crashes_max) try_parked(ours, cancel);
    const auto done = std::exchange(done_, {});
    std::vector<work*> rest;
    for (auto* one : ours)
      if (std::ranges::find(done, one) == done.end()) rest.push_back(one);
    settle_parked(rest, cancel);
  } catch (...) {
    done_.clear();
    for (const auto& one : due) unended_.push_back(one.parked->id);  // nobody has died over them
    throw;
  }
  return true;
}

// What has failed will probably fail again, so it begins alone; where all goes well, ever more go together.
// Others must not take those for abandoned that are still to come, so it ends well before that.
void consumer::engine::try_parked(batch messages, const std::stop_token& cancel) {
  std::set<consume::key_view> failed;
  const auto enough = env().now() + consume::announced_for / 2;
  const auto needs_all = alone();
  for (std::size_t at = 0, next = 0; at < messages.size() && env().now() < enough; at = next) {
    std::vector<work*> chunk;
    for (next = at; next < messages.size() && next - at < retry_together_; ++next) {
      const auto& m = messages[next]->what();
      if (next > at && (needs_all(m) || needs_all(messages[at]->what()))) break;
      if (m.key.empty() || !failed.contains({m.topic, m.key})) chunk.push_back(messages[next]);
    }
    if (chunk.empty()) continue;
    apply(chunk, cancel);
    retry_together_ = std::min(2 * retry_together_, options_.batch_max);
    for (const auto* one : chunk) {
      if (!one->charge) continue;
      failed.emplace(one->what().topic, one->what().key);
      retry_together_ = 1;
    }
  }
}

std::vector<consume::work*> consumer::engine::announce(batch due, const std::stop_token& cancel) {
  auto tx = db_.begin(cancel);
  if (!unended_.empty()) {
    parking_.end(tx, unended_);
    for (auto* one : due)
      if (std::ranges::find(unended_, one->parked->id) != unended_.end()) one->parked->starts = 0;
  }
  auto ours = parking_.start(tx, due, env().now());
  tx.commit("consumer.announce");
  unended_.clear();
  return ours;
}

// Those that have failed, and those that did not run: they wait behind one that has failed, or time was up.
void consumer::engine::settle_parked(batch messages, const std::stop_token& cancel) {
  if (messages.empty()) return;
  given_up_.clear();
  auto tx = db_.begin(cancel);
  const auto ours = parking_.keep(tx, messages);  // we may have slept, and others taken them over
  std::vector<std::int64_t> not_run;
  std::set<consume::key_view> failed;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& one = *messages[i];
    if (!ours[i]) continue;
    if (one.parked->starts >= consume::crashes_max && !one.charge)
      one.charge = failed_attempt{env().now(), failure_class::poison,
                                  std::to_string(one.parked->starts) + " processes ended while it ran"};
    if (one.charge) {
      write_parked_charge(tx, one);
      failed.emplace(one.what().topic, one.what().key);
    } else {
      not_run.push_back(one.parked->id);
      if (one.what().key.empty() || !failed.contains({one.what().topic, one.what().key}))
        parking_.go_on(tx, one.what(), one.parked->single, env().now());
    }
  }
  parking_.end(tx, not_run);
  tx.commit("consumer.charge");
  report_given_up();
}

}  // namespace settle::inline v0
