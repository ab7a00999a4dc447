#include "sqlite/write_queue.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace settle::sqlite {
namespace {

using namespace std::chrono_literals;
using test::child_process;
using test::code_of;
using test::pipe_signal;

constexpr duration long_enough = 30s;

// Whether a thread of this process sleeps, as the kernel sees it: the only way to know from outside
// that it stands in the queue.
bool is_asleep(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'S';
}

class write_queue_on_a_file : public ::testing::Test {
 protected:
  std::string path() const { return dir_.file("test.db-queue"); }

  static std::optional<errc> try_acquire(write_queue& queue, duration at_most) {
    return code_of([&] { queue.acquire(at_most, {}); });
  }

 private:
  test::temp_dir dir_;
};

TEST_F(write_queue_on_a_file, a_turn_ends_when_it_is_released_destroyed_or_replaced) {
  write_queue queue(path());
  auto turn = queue.acquire(0s, {});
  EXPECT_EQ(try_acquire(queue, 1ms), errc::store_busy);
  turn.release();
  turn.release();
  EXPECT_EQ(try_acquire(queue, 1ms), std::nullopt);
  {
    const auto scoped = queue.acquire(1ms, {});
  }
  turn = queue.acquire(1ms, {});
  turn = {};
  EXPECT_EQ(try_acquire(queue, 1ms), std::nullopt);
}

TEST_F(write_queue_on_a_file, within_a_process_the_first_to_come_is_the_first_served) {
  constexpr int waiters = 6;
  write_queue queue(path());
  std::mutex mutex;
  std::vector<int> served;
  std::vector<std::jthread> threads;
  auto turn = queue.acquire(long_enough, {});
  for (int i = 0; i < waiters; ++i) {
    std::atomic<pid_t> id = 0;
    threads.emplace_back([&, i] {
      id = ::gettid();
      const auto mine = queue.acquire(long_enough, {});
      const std::scoped_lock lock(mutex);
      served.push_back(i);
    });
    while (id == 0 || !is_asleep(id)) std::this_thread::yield();
  }
  turn.release();
  threads.clear();
  EXPECT_EQ(served, (std::vector{0, 1, 2, 3, 4, 5}));
}

TEST_F(write_queue_on_a_file, one_turn_at_a_time_over_several_queues_of_one_file) {
  write_queue first(path()), second(path()), third(path());
  std::atomic<int> inside = 0, most = 0, turns = 0;
  {
    std::vector<std::jthread> threads;
    for (auto* queue : {&first, &second, &third, &first, &second, &third})
      threads.emplace_back([&, queue] {
        for (int i = 0; i < 100; ++i) {
          const auto turn = queue->acquire(long_enough, {});
          most = std::max(most.load(), ++inside);
          ++turns;
          --inside;
        }
      });
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(turns, 600);
}

TEST_F(write_queue_on_a_file, a_waiter_on_another_queue_gets_the_turn_when_it_is_free) {
  write_queue first(path()), second(path());
  auto turn = first.acquire(0s, {});
  std::atomic<pid_t> id = 0;
  std::atomic<bool> served = false;
  std::jthread waiter([&] {
    id = ::gettid();
    const auto mine = second.acquire(long_enough, {});
    served = true;
  });
  while (id == 0 || !is_asleep(id)) std::this_thread::yield();
  EXPECT_FALSE(served);
  turn.release();
  waiter.join();
  EXPECT_TRUE(served);
}

TEST_F(write_queue_on_a_file, who_waits_too_long_is_told_store_busy_and_leaves_the_queue) {
  write_queue first(path()), second(path());
  {
    const auto turn = first.acquire(0s, {});
    const auto started = std::chrono::steady_clock::now();
    EXPECT_EQ(try_acquire(first, 20ms), errc::store_busy) << "behind a thread of its own process";
    EXPECT_EQ(try_acquire(second, 20ms), errc::store_busy) << "behind another queue";
    EXPECT_GE(std::chrono::steady_clock::now() - started, 40ms);
  }
  EXPECT_EQ(try_acquire(first, long_enough), std::nullopt);
  EXPECT_EQ(try_acquire(second, long_enough), std::nullopt);
}

TEST_F(write_queue_on_a_file, a_lock_that_comes_after_its_waiter_gave_up_is_given_back) {
  write_queue first(path()), second(path()), third(path());
  auto turn = first.acquire(0s, {});
  EXPECT_EQ(try_acquire(second, 1ms), errc::store_busy);
  turn.release();
  EXPECT_EQ(try_acquire(third, long_enough), std::nullopt);
  EXPECT_EQ(try_acquire(first, long_enough), std::nullopt);
  EXPECT_EQ(try_acquire(second, long_enough), std::nullopt);
}

TEST_F(write_queue_on_a_file, a_second_waiter_inherits_the_wait_of_one_that_gave_up) {
  write_queue first(path()), second(path());
  auto turn = first.acquire(0s, {});
  EXPECT_EQ(try_acquire(second, 1ms), errc::store_busy);
  std::optional<errc> outcome = errc::cancelled;
  std::jthread waiter([&] { outcome = try_acquire(second, long_enough); });
  turn.release();
  waiter.join();
  EXPECT_EQ(outcome, std::nullopt);
  EXPECT_EQ(try_acquire(first, long_enough), std::nullopt);
}

TEST_F(write_queue_on_a_file, a_cancelled_wait_ends_at_once_and_leaves_the_queue) {
  write_queue first(path()), second(path());
  for (auto* queue : {&first, &second}) {
    auto turn = first.acquire(long_enough, {});
    std::stop_source cancel;
    std::optional<errc> outcome;
    std::atomic<pid_t> id = 0;
    std::jthread waiter([&] {
      id = ::gettid();
      outcome = code_of([&] { queue->acquire(long_enough, cancel.get_token()); });
    });
    while (id == 0 || !is_asleep(id)) std::this_thread::yield();
    cancel.request_stop();
    waiter.join();
    EXPECT_EQ(outcome, errc::cancelled);
    turn.release();
    EXPECT_EQ(try_acquire(*queue, long_enough), std::nullopt);
  }
}

TEST_F(write_queue_on_a_file, a_waiter_that_gives_up_in_the_middle_does_not_hold_up_those_behind_it) {
  write_queue queue(path());
  auto turn = queue.acquire(0s, {});
  std::stop_source cancel;
  std::optional<errc> first_outcome, second_outcome = errc::cancelled;
  std::atomic<pid_t> first_id = 0;
  std::jthread first([&] {
    first_id = ::gettid();
    first_outcome = code_of([&] { queue.acquire(long_enough, cancel.get_token()); });
  });
  while (first_id == 0 || !is_asleep(first_id)) std::this_thread::yield();
  std::jthread second([&] { second_outcome = try_acquire(queue, long_enough); });
  cancel.request_stop();
  first.join();
  turn.release();
  second.join();
  EXPECT_EQ(first_outcome, errc::cancelled);
  EXPECT_EQ(second_outcome, std::nullopt);
}

void allow_threads(rlim_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = count;
  ::setrlimit(RLIMIT_NPROC, &limit);
}

// Who has to wait for another process needs a thread once. Proves I4
TEST_F(write_queue_on_a_file, who_can_have_no_thread_is_told_so_and_leaves_the_turn_to_others) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become somebody who has no threads left";
  child_process child([&] {
    write_queue first(path()), second(path());
    constexpr uid_t somebody = 54'322;  // nobody else counts against its limit, and root has none
    if (::setgid(somebody) != 0 || ::setuid(somebody) != 0) return 1;
    allow_threads(1);
    auto turn = first.acquire(0s, {});
    if (try_acquire(second, 1ms) != errc::store_unavailable) return 2;
    if (try_acquire(second, 1ms) != errc::store_unavailable) return 3;
    turn.release();
    if (try_acquire(second, 1ms) != std::nullopt) return 4;
    turn = first.acquire(0s, {});
    allow_threads(10);
    return try_acquire(second, 1ms) == errc::store_busy ? 0 : 5;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(write_queue_on_a_file, the_lock_is_free_when_its_holder_is_killed) {
  pipe_signal holding;
  child_process holder([&] {
    write_queue own(path());
    const auto turn = own.acquire(long_enough, {});
    holding.announce();
    ::pause();
    return 0;
  });
  holding.await();
  write_queue queue(path());
  EXPECT_EQ(try_acquire(queue, 10ms), errc::store_busy);
  EXPECT_EQ(holder.kill(), -SIGKILL);
  EXPECT_EQ(try_acquire(queue, long_enough), std::nullopt);
}

TEST_F(write_queue_on_a_file, who_waits_too_long_is_told_which_process_is_in_the_way) {
  const auto why = [&] {
    write_queue queue(path());
    try {
      queue.acquire(10ms, {});
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  pipe_signal holding;
  child_process holder([&] {
    write_queue own(path());
    const auto turn = own.acquire(long_enough, {});
    holding.announce();
    ::pause();
    return 0;
  });
  holding.await();
  EXPECT_NE(why().find("ms: process " + std::to_string(holder.pid()) + " holds"), std::string::npos) << why();
  holder.kill();
  write_queue own(path());
  const auto turn = own.acquire(long_enough, {});
  EXPECT_NE(why().find("ms: this process holds"), std::string::npos) << why();
}

TEST_F(write_queue_on_a_file, a_child_that_was_forked_meanwhile_does_not_keep_the_lock) {
  write_queue queue(path());
  pipe_signal alive;
  auto turn = queue.acquire(0s, {});
  child_process bystander([&] {
    alive.announce();
    ::pause();
    return 0;
  });
  alive.await();
  turn.release();
  write_queue other(path());
  EXPECT_EQ(try_acquire(other, long_enough), std::nullopt);
}

TEST_F(write_queue_on_a_file, a_turn_may_outlive_its_queue) {
  write_queue::turn turn;
  {
    write_queue queue(path());
    turn = queue.acquire(0s, {});
  }
  write_queue other(path());
  EXPECT_EQ(try_acquire(other, 1ms), errc::store_busy);
  turn.release();
  EXPECT_EQ(try_acquire(other, long_enough), std::nullopt);
}

TEST(write_queue_path, a_folder_that_does_not_exist_is_named_in_the_error) {
  EXPECT_EQ(code_of([] { write_queue("/no/such/folder/a.db-queue"); }), errc::store_unavailable);
}

}  // namespace
}  // namespace settle::sqlite
