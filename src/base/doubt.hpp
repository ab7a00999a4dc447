// An effect whose outcome is unknown is repeated or looked for. Where that fails as well, it stays in doubt:
// the later failure is certain of itself only, so the error that says outcome_unknown() is the one thrown.
#pragma once

#include <optional>

#include "settle/error.hpp"

namespace settle::inline v0 {

// Calls `attempt(again)` until its outcome is known, at most `attempts_max` times. It meets what an earlier
// one has left.
template <class Attempt>
auto until_known(int attempts_max, Attempt&& attempt) {
  std::optional<error> doubt;
  for (int attempts = 1;; ++attempts) {
    try {
      return attempt(doubt.has_value());
    } catch (const error& e) {
      if (e.outcome_unknown() && attempts < attempts_max)
        doubt = e;
      else if (doubt)
        throw *doubt;
      else
        throw;
    }
  }
}

// What `look` finds out about an effect that is in doubt.
template <class Look>
auto found_out(const error& doubt, Look&& look) {
  try {
    return look();
  } catch (const error&) {
    throw doubt;
  }
}

}  // namespace settle
