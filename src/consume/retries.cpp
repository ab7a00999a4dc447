#include "consume/retries.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "consume/parked_chunks.hpp"
#include "retry/crashes.hpp"
#include "settle/metrics.hpp"

namespace settle::consume {

// Under load they are announced by the next batch's transaction, and run right after it. Not if the batch had
// to be split: other handlers run then, and if one of them kills the process, those that were announced would
// be suspected.
bool retries::run_due(bool has_other_work, const std::stop_token& cancel) {
  auto& announcements = with_.announcements;
  if (announcements.has_some()) return run_announced(cancel);
  const auto now = with_.db.env().now();
  if (with_.schedule.ask(now, has_other_work) != retry_schedule::look::now) return false;
  std::vector<work> due;
  {
    auto look = with_.db.read();
    due = announcements.look(look, now);
  }
  if (due.empty() && !with_.schedule.somebody_waits_too_long()) return false;
  auto tx = with_.db.begin(cancel);
  auto made = announcements.announce(tx, std::move(due), now);
  try {
    tx.commit("consumer.announce");
  } catch (const error& e) {
    if (e.outcome_unknown()) announcements.will_not_run(made);
    throw;
  }
  announcements.committed(std::move(made));
  return run_announced(cancel);
}

bool retries::run_announced(const std::stop_token& cancel) {
  auto all = with_.announcements.take();
  if (all.messages.empty()) return false;
  std::vector<work*> ours;
  for (auto& one : all.messages) ours.push_back(&one);
  try {
    const auto enough = all.at + announced_for / 2;
    if (with_.db.env().now() >= enough) with_.schedule.came_too_late();
    std::vector<work*> done;
    if (!retry::has_crashed_enough(ours[0]->parked->starts)) done = run(ours, enough, cancel);
    std::vector<work*> rest;
    for (auto* one : ours)
      if (std::ranges::find(done, one) == done.end()) rest.push_back(one);
    write_down(rest, cancel);
  } catch (...) {
    with_.announcements.will_not_run(all);
    throw;
  }
  return true;
}

// Which of them are done. Others must not take those for abandoned that are still to come, so none begins
// after `enough`.
std::vector<work*> retries::run(batch messages, timestamp enough, const std::stop_token& cancel) {
  const auto& env = with_.db.env();
  std::vector<work*> done;
  parked_chunks chunks(messages, [&](const message& m) { return with_.handlers.runs_alone(m); });
  while (env.now() < enough) {
    const auto chunk = chunks.next(with_.schedule.together());
    if (chunk.empty()) break;
    env.counters->add("settle_consumer_retries_total", {{"consumer", with_.options.name}}, std::ssize(chunk));
    const auto committed = with_.apply(chunk, cancel);
    with_.schedule.tried(
        std::ranges::none_of(chunk, [](const work* one) { return one->charge.has_value(); }));
    for (const auto* one : chunk)
      if (std::ranges::find(committed, one) == committed.end()) chunks.hold_key_of(*one);
    done.insert(done.end(), committed.begin(), committed.end());
  }
  return done;
}

// Those that have failed, and those that did not run: they wait behind one that has failed, or time was up.
void retries::write_down(batch messages, const std::stop_token& cancel) {
  if (messages.empty()) return;
  const auto& env = with_.db.env();
  with_.charges.begin();
  auto tx = with_.db.begin(cancel);
  const auto ours = with_.parking.keep(tx, messages);  // we may have slept, and others taken them over
  std::vector<std::int64_t> not_run;
  std::set<key_view> failed;  // or not ours any more: others say when their keys go on
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& one = *messages[i];
    const key_view key(one.what().topic, one.what().key);
    if (!ours[i]) {
      with_.announcements.will_not_run(one);
      failed.insert(key);
      continue;
    }
    if (retry::has_crashed_enough(one.parked->starts) && !one.charge)
      one.charge = retry::charge_for_crashes(one.parked->starts, env.now());
    if (one.charge) {
      with_.charges.write_parked(tx, one);
      failed.insert(key);
    } else {
      not_run.push_back(one.parked->id);
      if (one.what().key.empty() || !failed.contains(key))
        with_.parking.go_on(tx, one.what(), one.parked->single, env.now());
    }
  }
  with_.parking.end(tx, not_run);
  tx.commit("consumer.charge");
  with_.report.given_up(with_.charges.take_given_up());
}

}  // namespace settle::consume
