// The steps of an attempt at a batch: what is unfit, whose partition it is, what is written down; and how the
// splitter makes attempts.
#include <algorithm>
#include <map>
#include <utility>

#include "consume/engine.hpp"
#include "consume/splitter.hpp"
#include "dead_letter/shared.hpp"
#include "retry/crashes.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {

// The splitter's side of the engine.
class consumer::engine::attempts final : public consume::attempt_host {
 public:
  attempts(engine& home, run& in) : home_(home), in_(in) {}

  std::optional<failure> attempt(batch messages) override {
    auto why = home_.try_once(messages, in_);
    if (why && why->put_off.empty()) in_.split = true;
    return why;
  }
  bool may_try() const override { return home_.pauses_.may_try(); }
  bool is_done(const work& one) const override { return std::ranges::find(in_.done, &one) != in_.done.end(); }
  void failed_alone(work& one, const failed_attempt& how) override { home_.failures_.failed_alone(one, how); }
  void keys_held_elsewhere() override { home_.claims_.end_stopped_holders(); }

 private:
  engine& home_;
  run& in_;
};

void consumer::engine::apply(batch messages, run& in) {
  attempts host(*this, in);
  consume::splitter(host).apply(messages);
}

std::optional<consume::failure> consumer::engine::find_unfit(batch messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& one = *messages[i];
    const auto& m = one.what();
    if (one.charge || one.parked || !address_of(m).empty() || handlers_.of(m) == nullptr) continue;
    if (const auto why = consume::find_unfit(one, options_.key))
      return failure{i, failures_.describe(*why, m)};
  }
  return std::nullopt;
}

// One that takes over from an owner that has not ended its work is careful with the first messages: one of
// them may have killed it.
void consumer::engine::take_over(const consume::fence_keeper::partitions& held,
                                 const std::stop_token& cancel) {
  const auto be_careful = [&](std::uint32_t partition) {
    caution_.begin(partition, options_.batch_max);
    report_.careful_with(fences_.name_of(partition), options_.batch_max);
  };
  fences_.take_over(db_, held, cancel, be_careful);
}

// A replay is not parked: its letter remembers over how many processes it was begun that had taken over from
// one that did not end its work. It runs alone, so it is not among others.
void consumer::engine::note_suspect(work& one, const std::stop_token& cancel) {
  const bool suspect = caution_.lasts(one.content.tag.partition) || one.content.redelivered;
  if (!suspect || one.noted || one.charge || address_of(one.what()) != options_.name) return;
  auto tx = db_.begin(cancel);
  const auto begun = note_replay_start(tx, one.what());
  tx.commit("consumer.note_replay");
  one.noted = true;
  if (retry::has_crashed_enough(begun)) one.charge = retry::charge_for_crashes(begun, env().now());
}

consume::claimed_batch consumer::engine::take_parked(transaction& tx, batch messages) {
  claimed_batch made;
  for (const bool ours : parking_.take(tx, messages))
    made.what.push_back(ours ? verdict::run : verdict::gone);
  return made;
}

// What does not run is written, in the same transaction: where it waits, or that it was given up. And what
// was claimed together; not before, because a batch that fails would have done it for nothing.
void consumer::engine::write_down(transaction& tx, batch messages, claimed_batch& of) {
  if (!of.fresh.empty()) retention_.note(tx, of.fresh, std::move(of.fresh_keys));
  std::vector<work*> ran;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& one = *messages[i];
    const auto& m = one.what();
    const auto log = fences_.log_of(one);
    switch (of.what[i]) {
      case verdict::run:
        if (one.parked) ran.push_back(&one);
        break;
      case verdict::charge:
        charges_.write(tx, one, of.keys.all[i]);
        break;
      case verdict::behind:
        parking_.add(tx, {one, log, of.keys.all[i]});
        break;
      case verdict::cautious:
        parking_.add(tx, {one, log, of.keys.all[i], 0, 1});
        parking_.hold_key(tx, m, of.keys.all[i], env().now());
        schedule_.expect(env().now());
        break;
      case verdict::beyond_horizon:
        charges_.give_up_late_copy(tx, one);
        break;
      case verdict::replay:
        if (!of.letters.at(i).blocks_key) break;
        parking_.go_on(tx, of.letters.at(i).what, "", env().now());
        schedule_.expect(env().now());
        break;
      case verdict::duplicate:
      case verdict::ignore:
      case verdict::others_replay:
      case verdict::gone:
      case verdict::left_out:
        break;
    }
  }
  parking_.go_on(tx, ran, env().now());
}

void consumer::engine::succeeded(batch messages, const claimed_batch& of, run& in) {
  std::map<verdict, std::int64_t> counted;
  time_counts delays;
  const auto now = env().now();
  std::int64_t charged_away = 0;  // to a dead letter, new or old
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto what = of.what[i];
    if (what == verdict::left_out) continue;
    ++counted[what];
    if (const auto stored = messages[i]->content.stored_at; what == verdict::run && stored)
      delays.add(now - *stored);
    const bool replay = !address_of(messages[i]->what()).empty();
    if (what == verdict::charge && (replay || messages[i]->given_up())) ++charged_away;
    if (what == verdict::cautious) caution_.spend(messages[i]->content.tag.partition);
    if (what != verdict::run && what != verdict::ignore) report_.skipped(messages[i]->what(), what);
    if (what != verdict::gone) in.done.push_back(messages[i]);
  }
  if (counted[verdict::run] + counted[verdict::replay] > 0) pauses_.handlers_succeeded();
  report_.applied(counted, charged_away);
  report_.given_up(charges_.take_given_up());
  env().counters->add_times("settle_consumer_apply_delay_seconds", {{"consumer", options_.name}}, delays);
}

}  // namespace settle::inline v0
