#include "settle/service.hpp"

#include <algorithm>

#include "base/pause.hpp"
#include "base/retry.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration failure_wait = std::chrono::milliseconds(10);
constexpr duration failure_wait_max = std::chrono::seconds(5);

// A failed run_once() is logged, counted and repeated later; the loop itself never ends for it.
void note_failure(service& what, const std::string& why, std::int64_t failures) {
  what.env().counters->add("settle_service_failures_total", {{"service", what.name()}});
  what.env().log->write(
      log_level::warning, "service_failed",
      {{"service", std::string(what.name())}, {"failures", std::to_string(failures)}, {"error", why}});
}

}  // namespace

void run(service& what, std::stop_token stop, std::stop_token cancel) {
  std::int64_t failures = 0;
  while (!stop.stop_requested()) {
    std::string why;
    try {
      const bool more = what.run_once(cancel);
      failures = 0;
      if (!more) what.arrivals().wait(what.idle_wait(), stop);
      continue;
    } catch (const error& e) {
      if (e.code() == errc::cancelled && cancel.stop_requested()) break;
      why = e.what();
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {
      why = "something that is no std::exception";
    }
    note_failure(what, why, ++failures);
    // Not to be woken by arrivals: after a failure the pause is the point.
    pause(quadratic_wait(failures, failure_wait, failure_wait_max), stop);
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
