// Everything that Settle takes from outside itself: time, randomness, log, counters, faults.
//
// A default-constructed environment is the real one. A test passes its own, and then a whole system
// runs under a seed and a clock that moves only when told:
//
//   settle::testing::manual_time time;
//   auto db = settle::sqlite::open("orders.db", {.env = {.time = &time}});
//
// The environment only points; what it points to must outlive every object that was given it.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)
namespace settle::inline v0 {

class id_source;
class metrics;

using duration = std::chrono::microseconds;
using timestamp = std::chrono::sys_time<duration>;

class time_source {
 public:
  virtual ~time_source() = default;
  virtual timestamp now() = 0;
};

class random_source {
 public:
  virtual ~random_source() = default;
  virtual std::uint64_t next() = 0;
};

enum class log_level { debug, info, warning, error };
std::string_view to_string(log_level level);

struct log_field {
  std::string_view name;
  std::string value;
};

// Receives one record per event of interest. Must be thread-safe and must not throw.
class log_sink {
 public:
  virtual ~log_sink() = default;
  virtual bool enabled(log_level level) const = 0;
  virtual void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) = 0;
};

// Named places before and after every effect. Null in production (the cost is one pointer test);
// the test kit arms it to fail or to kill the process there. See settle/testing.hpp.
class fault_points {
 public:
  virtual ~fault_points() = default;
  virtual void reached(std::string_view point) = 0;
};

// The real ones, process-wide.
time_source& system_time();
random_source& system_random();
id_source& system_ids();
log_sink& standard_error_log();  // warnings and errors, one line each
metrics& process_metrics();

struct environment {
  time_source* time = &system_time();
  random_source* random = &system_random();
  id_source* ids = &system_ids();
  log_sink* log = &standard_error_log();
  metrics* counters = &process_metrics();
  fault_points* faults = nullptr;

  timestamp now() const { return time->now(); }

  void fault(std::string_view point) const {
    if (faults != nullptr) [[unlikely]]
      faults->reached(point);
  }
};

// Runs `effect` between two fault points, `<name>.before` and `<name>.after`.
template <class Effect>
auto with_fault_points(const environment& env, std::string_view name, Effect&& effect) {
  if (env.faults == nullptr) [[likely]]
    return std::forward<Effect>(effect)();
  env.fault(std::string(name) + ".before");
  if constexpr (std::is_void_v<decltype(effect())>) {
    std::forward<Effect>(effect)();
    env.fault(std::string(name) + ".after");
  } else {
    auto result = std::forward<Effect>(effect)();
    env.fault(std::string(name) + ".after");
    return result;
  }
}

}  // namespace settle

#pragma GCC visibility pop
