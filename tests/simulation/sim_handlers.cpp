#include "simulation/sim_handlers.hpp"

#include "settle/failure.hpp"
#include "settle/testing.hpp"

namespace settle::sim {
namespace {

std::uint64_t mix(std::uint64_t seed, const std::string& text) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;  // FNV-1a
  return seed;
}

}  // namespace

void moody_handlers::run(const std::string& group, const std::string& order, timestamp now) {
  if (!moody() || healed_) return;
  if (now < closed_until_) throw handler_failed(failure_class::outage, std::string(closed) + " for " + order);
  const auto name = group + "/" + order;
  testing::seeded_random fate(mix(seed_ ^ 0xcbf29ce484222325, name));
  const auto kind = fate.below(100);
  const auto times = 1 + fate.below(3);
  if (kind < 4) throw handler_failed(failure_class::permanent, "never: " + order);
  if (kind < 7) throw handler_failed(failure_class::poison, "not yet: " + order);
  if (kind >= 22 || failures_[name] >= times) return;
  ++failures_[name];
  throw handler_failed(kind < 17 ? failure_class::poison : failure_class::transient, "not now: " + order);
}

}  // namespace settle::sim
