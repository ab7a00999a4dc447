// The decisions about a key that is claimed, completed or left behind. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "once/key.hpp"
#include "once/refusals.hpp"
#include "settle/claims.hpp"

namespace settle::keys {

// A claim with what is stored of its identity.
struct opened_claim {
  std::string identity;     // 32 bytes
  std::string fingerprint;  // a hash, or empty
  std::string run;
};

// What a store knows about an identity.
struct known_claim {
  std::string run;
  std::int64_t epoch = 0;
  std::string fingerprint;
  duration left{};                            // of its lease, by the clock that decides
  std::optional<answer> what = std::nullopt;  // none: it is not completed
};

enum class verdict { ours, ours_to_ask, completed, mismatch, in_flight, unknown, take_over };

// A request that differs is told so whatever became of the first one. The same run is the same call, repeated
// because its answer was lost. The row does not say whether that call has taken the key over; who would ask
// then is told to ask in any case, which is never wrong.
inline verdict judge(const known_claim& known, const opened_claim& asked, when_unknown policy) {
  if (!same_request(known.fingerprint, asked.fingerprint)) return verdict::mismatch;
  if (known.what) return verdict::completed;
  if (known.run == asked.run) return policy == when_unknown::ask ? verdict::ours_to_ask : verdict::ours;
  if (known.left > duration::zero()) return verdict::in_flight;
  return policy == when_unknown::hold ? verdict::unknown : verdict::take_over;
}

inline claim_outcome outcome_of_take_over(when_unknown policy) {
  return policy == when_unknown::ask ? claim_outcome::ask : claim_outcome::claimed;
}

// What a completion of this token is told that has changed nothing. A repeated one is done; another answer
// does not take the place of the one that others may have been given.
inline claim_answer told_again(const known_claim& known, const answer& now) {
  const auto& before = *known.what;
  const bool same = before.status == now.status && before.headers == now.headers && before.body == now.body;
  if (same) return claim_ended::done;
  return claim_result{claim_outcome::completed, {}, {}, before};
}

// Full hours, rounded up.
inline timestamp expiry(timestamp now, duration keep) {
  return std::chrono::ceil<std::chrono::hours>(now + keep);
}

// A call that is repeated begins its lease anew, as far as it has not a longer one.
inline duration lease_again(const known_claim& known, const claim_request& asked) {
  return std::max(known.left, asked.lease);
}
inline bool must_extend(const known_claim& known, verdict of, const claim_request& asked) {
  return (of == verdict::ours || of == verdict::ours_to_ask) && known.left < asked.lease;
}

// What the caller of a claim is told about one that is there already, unless it takes it over.
inline claim_result told(const known_claim& known, verdict of, const claim_request& asked) {
  switch (of) {
    case verdict::ours:
      return {
          claim_outcome::claimed, {uuid::parse(known.run).value(), known.epoch}, lease_again(known, asked)};
    case verdict::ours_to_ask:
      return {claim_outcome::ask, {uuid::parse(known.run).value(), known.epoch}, lease_again(known, asked)};
    case verdict::completed:
      return {claim_outcome::completed, {}, {}, *known.what};
    case verdict::mismatch:
      return refused(claim_outcome::mismatch);
    case verdict::in_flight:
      return refused(claim_outcome::in_flight, known.left);
    case verdict::unknown:
    case verdict::take_over:
      break;
  }
  return refused(claim_outcome::unknown);
}

}  // namespace settle::keys
