#include "settle/service.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "support/quiet_log.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

// A wake-up that the test gives, and that counts how often somebody slept on it.
class scripted_wakeup final : public wakeup {
 public:
  void wait(duration, std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    ++sleeps_;
    changed_.notify_all();
    changed_.wait(lock, stop, [&] { return woken_; });
    woken_ = false;
  }
  void wake() {
    const std::scoped_lock lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  void await_sleeps(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sleeps_ >= count; });
  }
  int sleeps() {
    const std::scoped_lock lock(mutex_);
    return sleeps_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool woken_ = false;
  int sleeps_ = 0;
};

// A service whose run_once() is a function of how often it was called.
class scripted_service final : public service {
 public:
  using script = std::function<bool(int call, std::stop_token cancel)>;
  explicit scripted_service(script work) : work_(std::move(work)) {
    env_.log = &log;
    env_.counters = &counters;
  }

  std::string_view name() const override { return "scripted"; }
  const environment& env() const override { return env_; }
  bool run_once(std::stop_token cancel) override { return work_(++calls, cancel); }
  wakeup& arrivals() override { return bell; }
  duration idle_wait() const override { return 1h; }
  void leave() noexcept override { ++left; }

  std::atomic<int> calls = 0;
  std::atomic<int> left = 0;
  scripted_wakeup bell;
  test::quiet_log log;
  metrics counters;

 private:
  script work_;
  environment env_;
};

// Something one thread announces and another awaits.
class signal {
 public:
  void announce() {
    const std::scoped_lock lock(mutex_);
    announced_ = true;
    changed_.notify_all();
  }
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return announced_; });
  }
  bool await_or_stop(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    return changed_.wait(lock, stop, [&] { return announced_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool announced_ = false;
};

TEST(service_loop, repeats_at_once_while_there_is_more_and_sleeps_when_there_is_not) {
  scripted_service work([](int call, std::stop_token) { return call < 5; });
  background loop(work);
  work.bell.await_sleeps(1);
  EXPECT_EQ(work.calls, 5);
  EXPECT_EQ(work.bell.sleeps(), 1);
  EXPECT_TRUE(loop.stop());
}

TEST(service_loop, works_again_when_it_is_woken) {
  scripted_service work([](int, std::stop_token) { return false; });
  background loop(work);
  work.bell.await_sleeps(1);
  work.bell.wake();
  work.bell.await_sleeps(2);
  EXPECT_EQ(work.calls, 2);
}

TEST(service_loop, a_failure_is_logged_counted_and_tried_again) {
  scripted_service work([](int call, std::stop_token) {
    if (call == 1) throw error(errc::store_unavailable, "disk");
    if (call == 2) throw 7;  // NOLINT: what somebody else's service may do
    return false;
  });
  background loop(work);
  work.bell.await_sleeps(1);
  EXPECT_EQ(work.calls, 3);
  EXPECT_EQ(work.log.count("service_failed"), 1u) << "one outage, one line";
  EXPECT_EQ(work.log.count("service_resumed work=scripted failures=2"), 1u);
  EXPECT_EQ(work.counters.value("settle_service_failures_total", {{"work", "scripted"}}), 2);
}

TEST(service_loop, pauses_longer_after_every_failure_in_a_row) {
  using steady = std::chrono::steady_clock;
  std::vector<steady::time_point> at;
  scripted_service work([&](int call, std::stop_token) {
    at.push_back(steady::now());
    if (call <= 3) throw error(errc::store_unavailable, "disk");
    return false;
  });
  background loop(work);
  work.bell.await_sleeps(1);
  ASSERT_EQ(at.size(), 4u);
  EXPECT_GE(at[1] - at[0], 10ms);
  EXPECT_GE(at[2] - at[1], 40ms);
  EXPECT_GE(at[3] - at[2], 90ms);
}

TEST(service_loop, a_success_ends_the_row_of_failures) {
  scripted_service work([](int call, std::stop_token) -> bool {
    if (call % 2 == 1) throw error(errc::store_unavailable, "disk");
    return call < 20;
  });
  const auto started = std::chrono::steady_clock::now();
  background loop(work);
  work.bell.await_sleeps(1);
  EXPECT_EQ(work.calls, 20);
  // Ten single failures pause 10 ms each; ten in a row would pause 3.85 s.
  EXPECT_LT(std::chrono::steady_clock::now() - started, 3s);
}

TEST(service_loop, a_stop_ends_the_pause_after_a_failure) {
  signal failing;
  scripted_service work([&](int call, std::stop_token) -> bool {
    if (call == 8) failing.announce();  // the pause after it would last 640 ms
    throw error(errc::store_unavailable, "disk");
  });
  std::stop_source stop;
  std::jthread loop([&] { run(work, stop.get_token()); });
  failing.await();
  const auto asked = std::chrono::steady_clock::now();
  stop.request_stop();
  loop.join();
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 600ms);
  EXPECT_EQ(work.calls, 8);
}

TEST(service_loop, a_soft_stop_lets_the_work_under_way_finish) {
  signal inside, may_finish;
  std::atomic<bool> finished = false;
  scripted_service work([&](int, std::stop_token cancel) {
    inside.announce();
    finished = may_finish.await_or_stop(cancel);
    return true;
  });
  background loop(work);
  inside.await();
  std::jthread finisher([&] { may_finish.announce(); });
  EXPECT_TRUE(loop.stop(10s));
  EXPECT_TRUE(finished);
  EXPECT_EQ(work.left, 1);
}

TEST(service_loop, work_that_outlasts_the_drain_is_cancelled_and_does_not_leave) {
  signal inside, never;
  scripted_service work([&](int, std::stop_token cancel) -> bool {
    inside.announce();
    never.await_or_stop(cancel);
    throw error(errc::cancelled, "stopped");
  });
  background loop(work);
  inside.await();
  EXPECT_FALSE(loop.stop(1ms));
  EXPECT_EQ(work.left, 0);
  EXPECT_EQ(work.log.count("service_failed"), 0u) << "being cancelled is no failure";
}

TEST(service_loop, a_clean_stop_while_asleep_leaves_once) {
  scripted_service work([](int, std::stop_token) { return false; });
  {
    background loop(work);
    work.bell.await_sleeps(1);
    EXPECT_TRUE(loop.stop());
    EXPECT_TRUE(loop.stop()) << "stopping again is harmless";
  }
  EXPECT_EQ(work.left, 1);
}

TEST(service_loop, one_that_is_asked_to_stop_ends_before_anybody_waits_for_it) {
  scripted_service work([](int, std::stop_token) { return false; });
  background loop(work);
  work.bell.await_sleeps(1);
  loop.ask_to_stop();
  while (work.left == 0) std::this_thread::yield();
  EXPECT_TRUE(loop.stop(10s));
  EXPECT_EQ(work.left, 1);
}

TEST(service_loop, the_destructor_stops) {
  scripted_service work([](int, std::stop_token) { return false; });
  {
    background loop(work);
    work.bell.await_sleeps(1);
  }
  EXPECT_EQ(work.left, 1);
}

TEST(service_loop, a_cancelled_error_without_a_cancel_is_a_failure_like_any_other) {
  scripted_service work([](int call, std::stop_token) -> bool {
    if (call == 1) throw error(errc::cancelled, "by somebody else");
    return false;
  });
  background loop(work);
  work.bell.await_sleeps(1);
  EXPECT_EQ(work.calls, 2);
  EXPECT_EQ(work.log.count("service_failed"), 1u);
}

TEST(service_loop, on_the_callers_thread_it_returns_when_stopped) {
  std::stop_source stop;
  scripted_service work([&](int call, std::stop_token) {
    if (call == 3) stop.request_stop();
    return true;
  });
  run(work, stop.get_token());
  EXPECT_EQ(work.calls, 3);
  EXPECT_EQ(work.left, 1);
}

}  // namespace
}  // namespace settle
