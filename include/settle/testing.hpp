// The test kit: time that moves when told, seeded randomness, and a scenario re-run with a failure and
// then with a kill at every fault point in turn. That of sagas is settle/saga_testing.hpp.
//
//   settle::testing::explore({
//       .prepare = [&] { world.reset(); },
//       .run     = [&](fault_points& f) { world.with(f).place_orders_and_drain(); },
//       .recover = [&] { world.restart_and_drain(); },
//       .check   = [&](const std::string& where) { EXPECT_TRUE(world.verify().clean()) << where; },
//   });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::testing {

class manual_time final : public time_source {
 public:
  explicit manual_time(timestamp start = timestamp(std::chrono::seconds(1'700'000'000)))
      : now_us_(start.time_since_epoch().count()) {}
  timestamp now() override { return timestamp(duration(now_us_.load())); }
  void advance(duration by) { now_us_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_us_;
};

class seeded_random final : public random_source {
 public:
  explicit seeded_random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::atomic<std::uint64_t> state_;
};

// Writes down every fault point that is reached, in order.
class fault_recorder final : public fault_points {
 public:
  void reached(std::string_view point) override { points.emplace_back(point); }
  std::vector<std::string> points;
};

enum class fault_kind {
  fail,  // throw a retryable store_unavailable: the outside says no, or its answer was lost
  kill,  // SIGKILL the process, right there
};

struct scenario {
  std::function<void()> prepare;                  // a fresh world
  std::function<void(fault_points&)> run;         // the work; may throw or die at the armed point
  std::function<void()> recover;                  // start again without faults and finish
  std::function<void(const std::string&)> check;  // gets "fail at relay.publish.before #7"
};

struct exploration {
  std::vector<std::string> points;  // what an undisturbed run passes, in order
  int runs = 0;
};

// Runs the scenario undisturbed, then once per reached fault point and kind. A kill happens in a forked
// child, so call it while the process has one thread. Throws std::logic_error if no fault point was
// reached, or if the first pass of one was not reached again: an exploration that tests nothing must not
// pass.
exploration explore(const scenario& what);

}  // namespace settle::testing

#pragma GCC visibility pop
