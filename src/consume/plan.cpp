#include "consume/plan.hpp"

#include <algorithm>

#include "consume/retry_policy.hpp"
#include "consume/seams.hpp"

namespace settle::consume {
namespace {

// A message that came from the broker has not failed before.
void judge_first_failure(work& one, const judging& by) {
  const auto why = one.charge->why;
  one.judged = retry::judge(policy_of(by.options), why, retry::tally().after(why), by.now - one.charge->at);
}

}  // namespace

bool holds_its_key(const work& one, verdict as, const consumer_options& options) {
  if (one.what().key.empty()) return false;
  return as == verdict::cautious ||
         (as == verdict::charge && (!one.given_up() || options.on_exhausted == on_exhausted::block_key));
}

void plan::judge_fresh(batch messages, std::span<const std::size_t> fresh, facts known, const judging& by) {
  for (std::size_t n = 0; n < fresh.size(); ++n) {
    auto& one = *messages[fresh[n]];
    const auto& m = one.what();
    auto& verdict_on = what[fresh[n]];
    if (known.beyond[n])
      verdict_on = verdict::beyond_horizon;
    else if (!m.key.empty() && known.waiting.contains({m.topic, m.key}) && !may_overtake())
      verdict_on = verdict::behind;
    else if (one.charge) {
      verdict_on = verdict::charge;
      judge_first_failure(one, by);
    } else if (known.careful.spend(one.content.tag.partition) || one.content.redelivered) {
      verdict_on = verdict::cautious;
    }
    if (holds_its_key(one, verdict_on, by.options)) known.waiting.emplace(m.topic, m.key);
  }
}

void plan::charge(batch messages, std::size_t at, const judging& by) {
  auto& one = *messages[at];
  judge_first_failure(one, by);
  what[at] = verdict::charge;
  if (!holds_its_key(one, verdict::charge, by.options)) return;
  for (auto later = at + 1; later < messages.size(); ++later)
    if (is_open(what[later]) && same_key(one.what(), messages[later]->what())) what[later] = verdict::behind;
}

void plan::leave_out(batch messages, std::size_t at) {
  auto* one = messages[at];
  what[at] = verdict::left_out;
  failed.push_back(one);
  for (auto later = at + 1; later < messages.size(); ++later)
    if (is_open(what[later]) && same_key(one->what(), messages[later]->what()) && leaves_with_it(what[later]))
      what[later] = verdict::left_out;
}

bool plan::has_to_run() const { return std::ranges::find(what, verdict::run) != what.end(); }

std::optional<failure> plan::left_out_of(batch messages) const {
  if (failed.empty()) return std::nullopt;
  failure found;
  found.alone = failed;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (what[i] == verdict::left_out && std::ranges::find(failed, messages[i]) == failed.end())
      found.behind.push_back(messages[i]);
  return found;
}

}  // namespace settle::consume
