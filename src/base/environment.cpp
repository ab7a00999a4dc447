#include "settle/environment.hpp"

#include <unistd.h>

#include <chrono>
#include <random>

#include "base/log_line.hpp"
#include "settle/ids.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

class real_time final : public time_source {
 public:
  timestamp now() override {
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  }
};

// One engine per thread, seeded by the operating system, and again in a forked child, so that two
// processes never draw the same ids.
class real_random final : public random_source {
 public:
  std::uint64_t next() override {
    thread_local pid_t seeded_in = 0;
    thread_local std::mt19937_64 engine;
    if (const pid_t here = ::getpid(); here != seeded_in) {
      std::random_device device;
      std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
      engine.seed(seed);
      seeded_in = here;
    }
    return engine();
  }
};

class stderr_log final : public log_sink {
 public:
  bool enabled(log_level level) const override { return level >= log_level::warning; }
  void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override {
    if (enabled(level)) write_log_line(level, event, fields);
  }
};

}  // namespace

std::string_view to_string(log_level level) {
  switch (level) {
    case log_level::debug:
      return "debug";
    case log_level::info:
      return "info";
    case log_level::warning:
      return "warning";
    case log_level::error:
      return "error";
  }
  return "unknown";
}

time_source& system_time() {
  static real_time it;
  return it;
}

random_source& system_random() {
  static real_random it;
  return it;
}

id_source& system_ids() {
  static id_source it(system_time(), system_random());
  return it;
}

log_sink& standard_error_log() {
  static stderr_log it;
  return it;
}

metrics& process_metrics() {
  static metrics it;
  return it;
}

}  // namespace settle
