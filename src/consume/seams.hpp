// Decisions that are known to go wrong, each a function of its own, and the moments of an attempt at which
// something is known to be done too early or too late. In the real library every answer is the right one and
// nothing happens at the moments; the test library settle_zoo has the bug zoo's (base/zoo.hpp) in their
// place.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "consume/plan.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"
#include "settle/failure.hpp"

namespace settle::consume {

// What a failure counts as: what fails for everybody is charged to nobody.
failure_class counted_as(failure_class why);

// The consumer that a replay is for, as this one sees it; empty: the message is none.
std::string_view addressed_to(const message& m, std::string_view consumer);

// Takes back what a handler that has failed has asked of the database. False: only a rollback helps.
bool take_back_part(transaction& tx) noexcept;

// Whether a failure is written down together with its message.
bool charges_are_written();

// Whether later messages of a key run while an earlier one waits.
bool may_overtake();

// Whether a later message of the key leaves a batch together with one that has failed.
bool leaves_with_it(verdict later);

// Whether records are kept until the broker is done with their messages, and horizons know of those that go.
bool records_outlast_redelivery();

class attempt_moments {
 public:
  using keys = std::vector<std::string_view>;
  attempt_moments(database& db, std::string consumer) : db_(db), consumer_(std::move(consumer)) {}

  void before_the_claims(const std::function<keys()>& keys_of_batch);
  void after_the_claims(transaction& tx, std::span<const std::string_view> keys_of_batch, plan& made) const;
  void after_a_failure(owned_transaction& tx) const;
  void before_the_commit(subscription& from, batch messages) const;

 private:
  database& db_;
  std::string consumer_;
  std::vector<bool> unseen_;
};

}  // namespace settle::consume
