// What follows from failures: splitting, charging, pausing, giving up.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "consume/engine.hpp"
#include "consume/retry_policy.hpp"
#include "consume/seams.hpp"
#include "consume/splitter.hpp"
#include "dead_letter/shared.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t error_bytes_max = 4000;

}  // namespace

// The splitter's side of the engine.
class consumer::engine::attempts final : public consume::attempt_host {
 public:
  attempts(engine& home, const std::stop_token& cancel) : home_(home), cancel_(cancel) {}

  std::optional<failure> attempt(batch messages) override { return home_.attempt(messages, cancel_); }
  bool may_try() const override { return home_.outage_.may_try(home_.env().now()); }
  bool is_done(const work& one) const override { return home_.is_done(one); }
  void failed_alone(work& one, const failed_attempt& how) override { home_.failed_alone(one, how); }
  void keys_held_elsewhere() override { home_.end_stopped_holders(); }

 private:
  engine& home_;
  const std::stop_token& cancel_;
};

void consumer::engine::apply(batch messages, const std::stop_token& cancel) {
  attempts host(*this, cancel);
  consume::splitter(host).apply(messages);
}

// Of this run: what became of it has committed.
bool consumer::engine::is_done(const work& one) const {
  return std::ranges::find(done_, &one) != done_.end();
}

// A handler of theirs would have been stopped by now.
void consumer::engine::end_stopped_holders() {
  const auto too_long = options_.handler_timeout + options_.takeover_wait;
  for (auto& [key, since] : held_elsewhere_) {
    if (env().now() - since < too_long) continue;
    since = env().now();
    parking_.end_stopped_holder(db_, key.first, key.second, too_long);
  }
}

// A rule of the user's that throws has said nothing.
std::optional<failure_class> consumer::engine::own_class(const std::exception& thrown, const message& m) {
  if (!options_.classify) return std::nullopt;
  std::string why = "something that is not a std::exception";
  try {
    return options_.classify(thrown, m);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  report_.classify_failed(m, why);
  return std::nullopt;
}

failed_attempt consumer::engine::describe(const std::exception& thrown, const message& m) {
  auto why = own_class(thrown, m);
  if (!why) why = class_of(thrown);
  return {env().now(), consume::counted_as(*why), storable_text(thrown.what(), error_bytes_max)};
}

// The charge is written with the next transaction; if the process ends before, the message is simply tried
// again.
void consumer::engine::failed_alone(work& one, const failed_attempt& how) {
  if (one.charge) throw error(errc::store_unavailable, "a failure cannot be written down: " + how.error);
  if (!one.parked && retry::is_everybodys(how.why, one.outages, successes_)) {
    pause(one, how);
    return;
  }
  one.charge = how;
  report_.failed(one, how);
}

void consumer::engine::pause(work& one, const failed_attempt& how) {
  one.outages.meet(successes_);
  outage_.goes_on(env().now());
  report_.paused(one, how, outage_);
}

void consumer::engine::resume() {
  if (outage_.lasts()) report_.resumed(outage_.ends(env().now()));
}

duration consumer::engine::jittered(duration wait) const {
  return retry::jittered(wait, options_.retry_jitter, *env().random);
}

dead_letter consumer::engine::letter_of(const work& of, dead_letter_reason why) const {
  dead_letter made;
  made.consumer = options_.name;
  made.consumer_version = options_.version;
  made.reason = why;
  made.failed_at = env().now();
  if (of.parked) made.history = of.parked->history;
  if (of.charge) made.history.push_back(*of.charge);
  made.attempts = (of.parked ? of.parked->attempts : 0) + (of.charge ? 1 : 0);
  if (!made.history.empty()) made.error = made.history.back().error;
  made.blocks_key = options_.on_exhausted == on_exhausted::block_key && !of.what().key.empty();
  made.what = of.what();
  made.log = log_of(of);
  made.position = of.parked ? of.parked->position : of.content.at.text();
  return made;
}

void consumer::engine::give_up(transaction& tx, dead_letter letter) {
  letter.id = write_dead_letter(tx, letter);
  given_up_.push_back(std::move(letter));
}

// Of a message that came from the broker.
void consumer::engine::write_charge(transaction& tx, const work& of, std::string_view dedup) {
  const auto& m = of.what();
  if (!replay_address(m).empty()) {
    replay_failed(tx, m, *of.charge);
    return;
  }
  if (!consume::charges_are_written()) return;
  if (of.given_up()) {
    const auto letter = letter_of(of, *of.judged->give_up);
    give_up(tx, letter);
    if (letter.blocks_key) parking_.hold_key(tx, m, dedup, std::nullopt);
    return;
  }
  const auto next = of.charge->at + jittered(of.judged->wait);
  const auto failed = retry::tally().after(of.charge->why);
  parking_.add(tx, {of, log_of(of), dedup, failed.attempts, 0, {*of.charge}, failed.charged});
  parking_.hold_key(tx, m, dedup, next);
  schedule_.expect(next);
}

void consumer::engine::write_parked_charge(transaction& tx, work& of) {
  auto& place = *of.parked;
  const auto why = of.charge->why;
  std::optional<timestamp> last_failed;
  if (!place.history.empty()) last_failed = place.history.back().at;
  const auto first =
      retry::ages_from({place.first_failed_at, last_failed, last_success_}, why, of.charge->at);
  place.first_failed_at = first;
  auto failed = place.failures().after(why);
  if (!retry::is_passing(why)) failed.attempts = failed.charged;  // the pause grows with these alone
  of.judged = retry::judge(consume::policy_of(options_), why, failed, env().now() - first);
  if (!of.given_up()) {
    auto history = place.history;
    history.push_back(*of.charge);
    const auto next = of.charge->at + jittered(of.judged->wait);
    parking_.charge(tx, of, history, next);
    schedule_.expect(next);
    return;
  }
  const auto letter = letter_of(of, *of.judged->give_up);
  give_up(tx, letter);
  parking_.give_up(tx, of);
  if (letter.blocks_key)
    parking_.block_key(tx, of.what());
  else
    parking_.go_on(tx, of.what(), place.single, env().now());
}

}  // namespace settle::inline v0
