#include "consume/handlers.hpp"

#include "dead_letter/shared.hpp"

namespace settle::consume {

// What a replay will need is not known before its letter is.
bool handler_table::runs_alone(const message& m) const {
  if (!replay_address(m).empty()) return true;
  const auto* found = of(m);
  return found != nullptr && found->alone;
}

}  // namespace settle::consume
