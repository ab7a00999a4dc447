#include "workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "settle/testing.hpp"

namespace storm {

using settle::testing::seeded_random;

order make_order(const settings& of, int number) {
  seeded_random random(of.seed * 1'000'003 + static_cast<std::uint64_t>(number));
  order made;
  made.id = fmt::format("order-{:06}", number);
  made.customer = fmt::format("customer-{:02}", random.below(customers));
  made.total_cents = 100 + static_cast<std::int64_t>(random.below(100'000));
  return made;
}

const char* name_of(role r) {
  switch (r) {
    case role::producer:
      return "producer";
    case role::relay:
      return "relay";
    case role::consumer:
      return "consumer";
  }
  return "?";
}

std::vector<strike> make_strikes(const settings& of) {
  seeded_random random(of.seed ^ 0x5741544552535045);
  const auto last = static_cast<std::uint64_t>(of.orders) * 2 * 9 / 10;
  std::vector<strike> strikes;
  for (int i = 0; i < of.strikes; ++i) {
    strike s;
    s.at_progress = static_cast<std::int64_t>(random.below(last));
    s.victim = static_cast<role>(random.below(3));
    s.index = static_cast<int>(random.below(2));
    // A relay and a consumer each sleep past their lease, and one in ten of the rest.
    // Producers have no lease.
    if (i < 2) s.victim = i == 0 ? role::relay : role::consumer;
    if (i < 2 || (s.victim != role::producer && random.below(10) == 0)) s.how = blow::pause;
    strikes.push_back(s);
  }
  std::ranges::sort(strikes, {}, &strike::at_progress);
  return strikes;
}

std::vector<strike> make_service_strikes(const settings& of) {
  auto strikes = make_strikes(of);
  seeded_random random(of.seed ^ 0x52454c4f4144);
  const auto last = static_cast<std::uint64_t>(of.orders) * 2 * 9 / 10;
  for (int i = 0; i < of.reloads; ++i)
    strikes.push_back({.at_progress = static_cast<std::int64_t>(random.below(last)),
                       .victim = role::relay,
                       .index = i % 2,
                       .how = blow::reload});
  std::ranges::sort(strikes, {}, &strike::at_progress);
  return strikes;
}

}  // namespace storm
