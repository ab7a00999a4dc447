// A consumer's round, from top to bottom: fetch, run a batch in one transaction, acknowledge. The steps of
// that transaction are in attempt.cpp, parked messages are in retries.cpp.
#include <algorithm>
#include <utility>

#include "consume/engine.hpp"
#include "queries/sql.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t read_ahead = 8;  // batches per fetch

// What nobody has assigned could not be fenced.
void require_assigned(std::span<const delivery> arrived, const consume::fence_keeper& fences) {
  for (const auto& one : arrived)
    if (fences.name_of(one.tag.partition).empty())
      throw error(errc::invalid_argument, "the broker has delivered message " + one.content.id +
                                              " of a partition that it has not assigned");
}

}  // namespace

// Parked messages and new ones take turns.
bool consumer::engine::run_round(const std::stop_token& cancel) {
  subscribe();
  fetch(cancel);
  if (!pauses_.may_try()) {
    intake_.acknowledge(cancel);
    return false;
  }
  // With nothing else at hand, one of the parked messages tells whether an outage is over.
  const bool retried =
      (!pauses_.outage_lasts() || inbox_.size() == 0) && retries_.run_due(inbox_.size() > 0, cancel);
  if (run_arrived(cancel) || retried) return true;
  if (inbox_.size() == 0)
    caution_.end_all();  // what the last owner can have had in hand has arrived, and is done
  intake_.acknowledge(cancel);
  return sweep(cancel);
}

// Several batches are read ahead: one look at each partition serves them all. During an outage something is
// needed to try whether it is over, and not only what has failed for it: that may be alone with it.
void consumer::engine::fetch(const std::stop_token& cancel) {
  const auto room = options_.in_flight_max - std::min(inbox_.size(), options_.in_flight_max);
  const bool enough = pauses_.outage_lasts() ? inbox_.has_untried(env().now())
                                             : inbox_.ready(env().now()) >= options_.batch_max;
  const auto wanted = enough ? 0 : std::min(room, read_ahead * options_.batch_max);
  auto arrived = intake_.fetch(wanted, cancel);
  if (!arrived.revoked.empty()) {
    fences_.release(db_, arrived.revoked);
    claims_.forget_holders();
  }
  inbox_.revoke(arrived.revoked);
  for (const auto which : arrived.revoked) caution_.end(which);
  for (const auto& one : arrived.assigned) fences_.assign(one, env().ids->next().text());
  if (intake_.has_owners()) require_assigned(arrived.deliveries, fences_);
  const auto held = fences_.of(arrived.deliveries);
  inbox_.add(std::move(arrived.deliveries));
  take_over(held, cancel);
}

bool consumer::engine::run_arrived(const std::stop_token& cancel) {
  const auto alone = [this](const message& m) { return handlers_.runs_alone(m); };
  const auto messages = pauses_.outage_lasts() ? inbox_.probe(env().now())
                                               : inbox_.next_batch(runner_.batch_limit(), alone, env().now());
  if (messages.empty()) return false;
  run arrived{cancel};
  try {
    apply(messages, arrived);
  } catch (const consume::partition_lost& e) {
    finish(arrived);
    drop_partition(e);
    return true;
  } catch (...) {
    finish(arrived);  // what did commit stays done, whatever stopped the rest
    throw;
  }
  finish(arrived);
  retries_.run_announced(cancel);
  if (intake_.is_time_to_acknowledge()) intake_.acknowledge(cancel);
  return pauses_.may_try();
}

std::optional<consume::failure> consumer::engine::try_once(batch messages, run& in) {
  if (auto unfit = find_unfit(messages)) return unfit;
  const bool parked = messages[0]->parked.has_value();
  if (!parked) {
    take_over(fences_.of(messages), in.cancel);
    note_suspect(*messages[0], in.cancel);
    moments_.before_the_claims([&] { return consume::dedup_keys_of(messages, options_.key, fences_).all; });
  }
  auto watched = runner_.begin(in.cancel);
  auto tx = db_.begin(watched.token());
  auto judged =
      parked ? std::optional(take_parked(tx, messages)) : claims_.claim(tx, messages, intake_.from());
  if (!judged) {
    tx.rollback();
    return try_once(messages, in);
  }
  if (!judged->put_off.empty()) return failure{std::nullopt, {}, std::move(judged->put_off)};
  auto& todo = *judged;
  std::optional<consume::announcement> next;
  if (!parked && schedule_.is_left_to_the_batch() && !in.split) next = announcements_.look_and_announce(tx);
  if (auto why = runner_.run(tx, messages, todo, watched)) {
    moments_.after_a_failure(tx);
    return why;
  }
  claims_.give_back(tx, messages, todo);
  if (!parked) moments_.before_the_commit(intake_.from(), messages);
  charges_.begin();
  const auto of_the_batch = [&](const error& e) {
    if (watched.is_stop(e)) throw e;
    return failure{std::nullopt, failures_.describe(e, messages[0]->what())};
  };
  bool expires = false;
  try {  // what handlers have posted may fail only now
    write_down(tx, messages, todo);
    expires = retention_.may_expire(tx);
  } catch (const error& e) {
    return of_the_batch(e);
  }
  // After the handlers, because others wait for what is removed. Two batches: faster than they come in.
  if (expires) retention_.expire(tx, 2);
  try {
    tx.post(queries::sql::keep_durable);
    tx.commit("consumer.commit");
  } catch (const error& e) {
    // Trouble of the store is an outage. Whether it has committed all the same, the claims will tell.
    if (next && e.outcome_unknown()) announcements_.will_not_run(*next);
    return of_the_batch(e);
  }
  if (!todo.fresh.empty()) retention_.note_committed();
  if (next) announcements_.committed(std::move(*next));
  succeeded(messages, todo, in);
  return todo.left_out_of(messages);
}

void consumer::engine::finish(const run& of) {
  intake_.finished(of.done);
  inbox_.finished(of.done);
}

}  // namespace settle::inline v0
