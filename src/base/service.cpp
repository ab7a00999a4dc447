#include "settle/service.hpp"

#include <algorithm>

#include "base/growing_log.hpp"
#include "base/if_possible.hpp"
#include "base/pause.hpp"
#include "base/quadratic_wait.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration failure_wait = std::chrono::milliseconds(10);
constexpr duration failure_wait_max = std::chrono::seconds(5);

// A failed run_once() is counted and repeated later; the loop itself never ends for it, also if there is no
// memory to say so. An outage is written once, and then less and less often.
class failures {
 public:
  explicit failures(const service& of) : of_(of) {}

  void add(const char* why) noexcept {
    const bool tell = log_.fails(of_.env().now());
    if_possible([&] { of_.env().counters->add("settle_service_failures_total", {{"work", of_.name()}}); });
    if (!tell) return;
    if_possible([&] {
      of_.env().log->write(
          log_level::warning, "service_failed",
          {{"work", std::string(of_.name())}, {"failures", std::to_string(log_.failures())}, {"error", why}});
    });
  }

  void end() noexcept {
    const auto failed = log_.failures();
    const auto lasted = log_.works(of_.env().now());
    if (!lasted) return;
    if_possible([&] {
      of_.env().log->write(log_level::info, "service_resumed",
                           {{"work", std::string(of_.name())},
                            {"failures", std::to_string(failed)},
                            {"after_ms", std::to_string(*lasted / std::chrono::milliseconds(1))}});
    });
  }

  std::int64_t in_a_row() const { return log_.failures(); }

 private:
  const service& of_;
  growing_log log_;
};

}  // namespace

void run(service& what, std::stop_token stop, std::stop_token cancel) {
  failures seen(what);
  while (!stop.stop_requested()) {
    try {
      const bool more = what.run_once(cancel);
      seen.end();
      if (!more) what.arrivals().wait(what.idle_wait(), stop);
      continue;
    } catch (const error& e) {
      if (e.code() == errc::cancelled && cancel.stop_requested()) break;
      seen.add(e.what());
    } catch (const std::exception& e) {
      seen.add(e.what());
    } catch (...) {
      seen.add("something that is no std::exception");
    }
    // Not to be woken by arrivals: after a failure the pause is the point.
    pause(quadratic_wait(seen.in_a_row(), failure_wait, failure_wait_max), stop);
  }
  cancel.stop_requested() ? what.abandon() : what.leave();
}

background::background(service& what)
    : thread_([this, &what] {
        run(what, stop_.get_token(), cancel_.get_token());
        const std::scoped_lock lock(mutex_);
        has_ended_ = true;
        ended_.notify_all();
      }) {}

background::~background() { stop(); }

void background::ask_to_stop() noexcept { stop_.request_stop(); }

bool background::stop(duration drain) {
  ask_to_stop();
  bool in_time = false;
  {
    std::unique_lock lock(mutex_);
    in_time = ended_.wait_for(lock, drain, [this] { return has_ended_; });
  }
  if (!in_time) cancel_.request_stop();
  if (thread_.joinable()) thread_.join();
  return in_time;
}

}  // namespace settle
