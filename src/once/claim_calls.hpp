// What all stores of claims share: bounds, and calls of many threads in one.
#pragma once

#include <span>
#include <vector>

#include "base/batcher.hpp"
#include "settle/claims.hpp"

namespace settle::keys {

// Throws invalid_argument, invalid_name or payload_too_large.
void check(const claim_call& call);

// Draws the run of a claim that has none. Before anything that may be repeated: what the first call has
// claimed would be nobody's if the second one had another run.
void name_run(claim_call& call, const environment& env);

const request_identity& who_of(const claim_call& call);

// Those that come while others are at the store go there together.
class batched_claims : public claims {
 public:
  std::vector<claim_answer> run(std::span<const claim_call> calls) final;

 protected:
  claim_answer run_with_others(claim_call call) final;
  // Of calls that were checked.
  virtual std::vector<claim_answer> run_checked(std::span<const claim_call> calls) = 0;

 private:
  // Callers wait, so what their calls point to is there.
  batcher<claim_call, claim_answer> waiting_{
      [this](std::span<const claim_call> all) { return run_and_count(all); }, batcher_limits{}};
  std::vector<claim_answer> run_and_count(std::span<const claim_call> calls);
};

}  // namespace settle::keys
