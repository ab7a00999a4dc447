#include "consume/seams.hpp"

#include "base/zoo.hpp"
#include "dead_letter/shared.hpp"
#include "queries/consume.hpp"
#include "settle/driver/database.hpp"

namespace settle::consume {

failure_class counted_as(failure_class why) {
  if (zoo::has(zoo::bug::charge_for_an_outage) && why == failure_class::outage) return failure_class::poison;
  return why;
}

std::string_view addressed_to(const message& m, std::string_view consumer) {
  const auto said = replay_address(m);
  const bool ours = said == consumer;
  if (zoo::has(zoo::bug::replay_to_all_groups) && !ours) return {};
  if (zoo::has(zoo::bug::expiry_before_replay) && ours) return {};
  return said;
}

bool take_back_part(transaction& tx) noexcept {
  return zoo::has(zoo::bug::failed_part_kept) || transaction_parts::drop(tx);
}

bool charges_are_written() { return !zoo::has(zoo::bug::claim_outside_rolled_back_part); }

bool may_overtake() { return zoo::has(zoo::bug::overtaking_a_parked_key); }

bool leaves_with_it(verdict later) {
  return !zoo::has(zoo::bug::charge_kept_when_left_out) || later == verdict::run;
}

bool records_outlast_redelivery() { return !zoo::has(zoo::bug::retention_by_wrong_clock); }

void attempt_moments::before_the_claims(const std::function<keys()>& keys_of_batch) {
  if (!zoo::has(zoo::bug::check_then_insert)) return;
  unseen_.clear();
  auto look = db_.read();
  for (const auto& key : keys_of_batch())
    unseen_.push_back(look.execute(queries::consume::is_processed, {consumer_, key}).empty());
}

void attempt_moments::after_the_claims(transaction& tx, std::span<const std::string_view> keys_of_batch,
                                       plan& made) const {
  if (zoo::has(zoo::bug::check_then_insert))
    for (std::size_t i = 0; i < made.what.size(); ++i)
      if (made.what[i] == verdict::run || made.what[i] == verdict::duplicate)
        made.what[i] = unseen_[i] ? verdict::run : verdict::duplicate;
  if (zoo::has(zoo::bug::ack_lost_twice))
    for (std::size_t i = 0; i < made.what.size(); ++i)
      if (made.what[i] == verdict::duplicate)
        tx.execute(queries::consume::give_claim_back, {consumer_, keys_of_batch[i]});
}

void attempt_moments::after_a_failure(owned_transaction& tx) const {
  if (zoo::has(zoo::bug::claim_kept_after_failed_handler)) tx.commit("consumer.commit");
}

void attempt_moments::before_the_commit(subscription& from, batch messages) const {
  if (!zoo::has(zoo::bug::ack_before_commit)) return;
  std::vector<delivery_tag> tags;
  for (const auto* one : messages) tags.push_back(one->content.tag);
  from.acknowledge(tags);
}

}  // namespace settle::consume
