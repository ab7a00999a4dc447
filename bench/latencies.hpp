// What the benches of latency share.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"

namespace bench {

inline std::int64_t now_ns() { return clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

inline void await(const std::atomic<std::int64_t>& mark) {
  const auto deadline = clock::now() + std::chrono::seconds(30);
  while (mark.load() == 0) {
    if (clock::now() > deadline) throw std::runtime_error("an event did not arrive within 30 s");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

struct latency_targets {
  int p50_ms;
  int p99_ms;  // 0: none
};

// Two reports, of milliseconds.
inline void add_latencies(std::vector<report>& to, const std::string& name, const std::string& where,
                          const latency_targets& targets, const std::vector<double>& ours,
                          const std::vector<double>& raw) {
  const auto one = [&](const char* which, double share, int target) {
    report r;
    r.name = name + "_" + which;
    r.what = std::string(which) + " from commit to handler, idle, " + where;
    r.unit = "ms";
    r.lower_is_better = true;
    r.ours = percentile(ours, share);
    r.raw = percentile(raw, share);
    r.ratio = *r.raw / r.ours;
    if (target > 0) {
      r.target = "< " + std::to_string(target) + " ms";
      r.reached = r.ours < target;
    }
    r.counters = {{"samples", static_cast<double>(ours.size())}, {"max_ms", percentile(ours, 1.0)}};
    to.push_back(std::move(r));
  };
  one("p50", 0.5, targets.p50_ms);
  one("p99", 0.99, targets.p99_ms);
}

}  // namespace bench
