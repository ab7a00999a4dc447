// What the benches with several clients of PostgreSQL share.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <vector>

#include "harness.hpp"
#include "raw_postgres.hpp"

namespace bench {

struct slice_plan {
  int rounds;
  int clients;
  std::int64_t each;  // commits of each client per slice
};

inline slice in_parallel(const slice_plan& plan, const std::function<void(int client)>& place_one) {
  return measure(plan.clients * plan.each, [&] {
    std::vector<std::future<void>> clients;
    for (int client = 0; client < plan.clients; ++client)
      clients.push_back(std::async(std::launch::async, [&, client] {
        for (std::int64_t n = 0; n < plan.each; ++n) place_one(client);
      }));
    for (auto& one : clients) one.get();
  });
}

// How much the server has logged for the units of all slices.
class logged {
 public:
  explicit logged(raw_connection& raw) : raw_(raw) {}

  slice of(const std::function<slice()>& work) {
    const auto before = wal_position(raw_);
    auto done = work();
    bytes_ += wal_position(raw_) - before;
    units_ += done.units;
    return done;
  }
  double per_unit() const { return static_cast<double>(bytes_) / static_cast<double>(units_); }

 private:
  raw_connection& raw_;
  std::int64_t bytes_ = 0;
  std::int64_t units_ = 0;
};

}  // namespace bench
