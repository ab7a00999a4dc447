#include "consume/charges.hpp"

#include <optional>

#include "consume/letters.hpp"
#include "consume/retry_policy.hpp"
#include "consume/seams.hpp"
#include "dead_letter/shared.hpp"
#include "retry/judge.hpp"

namespace settle::consume {

void judge_next_failure(work& one, timestamp last_success, const judging& by) {
  auto& place = *one.parked;
  const auto why = one.charge->why;
  std::optional<timestamp> last_failed;
  if (!place.history.empty()) last_failed = place.history.back().at;
  const auto first =
      retry::ages_from({place.first_failed_at, last_failed, last_success}, why, one.charge->at);
  place.first_failed_at = first;
  auto failed = place.failures().after(why);
  if (!retry::is_passing(why)) failed.attempts = failed.charged;  // the pause grows with these alone
  one.judged = retry::judge(policy_of(by.options), why, failed, by.now - first);
}

void charges::write(transaction& tx, const work& of, std::string_view dedup) {
  const auto& m = of.what();
  if (!replay_address(m).empty()) {
    replay_failed(tx, m, *of.charge);
    return;
  }
  if (!charges_are_written()) return;
  if (of.given_up()) {
    if (give_up(tx, of)) parking_.hold_key(tx, m, dedup, std::nullopt);
    return;
  }
  const auto next = next_attempt(of);
  const auto failed = retry::tally().after(of.charge->why);
  parking_.add(tx, {of, fences_.log_of(of), dedup, failed.attempts, 0, {*of.charge}, failed.charged});
  parking_.hold_key(tx, m, dedup, next);
  schedule_.expect(next);
}

void charges::write_parked(transaction& tx, work& of) {
  judge_next_failure(of, pauses_.last_success(), {options_, env_.now()});
  if (of.given_up()) {
    const bool blocks_key = give_up(tx, of);
    parking_.give_up(tx, of);
    if (blocks_key)
      parking_.block_key(tx, of.what());
    else
      parking_.go_on(tx, of.what(), of.parked->single, env_.now());
    return;
  }
  auto history = of.parked->history;
  history.push_back(*of.charge);
  const auto next = next_attempt(of);
  parking_.charge(tx, of, history, next);
  schedule_.expect(next);
}

void charges::give_up_late_copy(transaction& tx, const work& of) {
  write_letter(tx, letter_beyond_horizon(of, {options_, env_.now(), fences_.log_of(of)}));
}

// Whether its key waits for an operator.
bool charges::give_up(transaction& tx, const work& of) {
  auto letter = letter_of(of, *of.judged->give_up, {options_, env_.now(), fences_.log_of(of)});
  const bool blocks_key = letter.blocks_key;
  write_letter(tx, std::move(letter));
  return blocks_key;
}

void charges::write_letter(transaction& tx, dead_letter letter) {
  letter.id = write_dead_letter(tx, letter);
  given_up_.push_back(std::move(letter));
}

timestamp charges::next_attempt(const work& of) const {
  return of.charge->at + retry::jittered(of.judged->wait, options_.retry_jitter, *env_.random);
}

}  // namespace settle::consume
