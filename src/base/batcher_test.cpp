#include "base/batcher.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <numeric>
#include <set>
#include <thread>

#include "support/expect_error.hpp"

namespace settle {
namespace {

using test::code_of;
using int_batcher = batcher<int, int>;

// A flush that the test can hold open while others queue behind it.
class gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await_entered() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_ > 0; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int entered_ = 0;
  bool open_ = false;
};

std::vector<int> doubled(std::span<const int> items) {
  std::vector<int> out;
  for (const int one : items) out.push_back(2 * one);
  return out;
}

// Holds the first flush of item 0 open until `count` others wait, then lets everything run.
template <class Call>
void call_behind_a_flush(int_batcher& b, gate& first, int count, const Call& call) {
  std::vector<std::jthread> callers;
  callers.emplace_back([&] { b.call(0); });
  first.await_entered();
  for (int i = 1; i <= count; ++i) callers.emplace_back([&, i] { call(i); });
  while (b.waiting_count() < static_cast<std::size_t>(count)) std::this_thread::yield();
  first.open();
}

TEST(batcher, a_lone_call_goes_at_once_and_alone) {
  std::vector<std::size_t> sizes;
  std::thread::id flushed_by;
  int_batcher b(
      [&](std::span<const int> items) {
        sizes.push_back(items.size());
        flushed_by = std::this_thread::get_id();
        return doubled(items);
      },
      {});
  EXPECT_EQ(b.call(21), 42);
  EXPECT_EQ(b.call(4), 8);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(flushed_by, std::this_thread::get_id()) << "no hand-over between threads";
}

// Proves promise 8's means: everyone who waits is served by one flush
TEST(batcher, calls_that_come_during_a_flush_share_the_next_one) {
  gate first;
  std::vector<std::size_t> sizes;
  int_batcher b(
      [&](std::span<const int> items) {
        sizes.push_back(items.size());
        if (items[0] == 0) first.pass();
        return doubled(items);
      },
      {});
  std::atomic<int> right = 0;
  call_behind_a_flush(b, first, 10, [&](int i) { right += b.call(i) == 2 * i; });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 10}));
  EXPECT_EQ(right, 10);
}

TEST(batcher, a_flush_takes_no_more_than_its_maximum) {
  gate first;
  std::vector<std::size_t> sizes;
  int_batcher b(
      [&](std::span<const int> items) {
        sizes.push_back(items.size());
        if (items[0] == 0) first.pass();
        return doubled(items);
      },
      {.batch_max = 4, .queue_max = 100});
  call_behind_a_flush(b, first, 10, [&](int i) { b.call(i); });
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), 11u);
  for (const auto size : sizes) EXPECT_LE(size, 4u);
}

TEST(batcher, one_bad_item_fails_alone) {
  gate first;
  int_batcher b(
      [&](std::span<const int> items) {
        if (items[0] == 0) first.pass();
        for (const int one : items)
          if (one == 7) throw error(errc::constraint_violated, "seven");
        return doubled(items);
      },
      {});
  std::atomic<int> good = 0, bad = 0;
  call_behind_a_flush(b, first, 10, [&](int i) {
    const auto code = code_of([&] { good += b.call(i) == 2 * i; });
    if (code == errc::constraint_violated) bad += i;
  });
  EXPECT_EQ(good, 9);
  EXPECT_EQ(bad, 7);
}

TEST(batcher, trouble_of_the_store_fails_everyone_with_the_retryable_error_and_is_not_split) {
  gate first;
  std::atomic<int> flushes = 0;
  int_batcher b(
      [&](std::span<const int> items) {
        ++flushes;
        if (items[0] == 0) {
          first.pass();
          return doubled(items);
        }
        throw error(errc::store_unavailable, "disk");
      },
      {});
  std::atomic<int> failed = 0;
  call_behind_a_flush(b, first, 10,
                      [&](int i) { failed += code_of([&] { b.call(i); }) == errc::store_unavailable; });
  EXPECT_EQ(failed, 10);
  EXPECT_EQ(flushes, 2);
}

TEST(batcher, every_caller_gets_a_whole_error_of_its_own) {
  gate first;
  const auto thrown = error::with_unknown_outcome(errc::store_unavailable, "disk");
  int_batcher b(
      [&](std::span<const int> items) -> std::vector<int> {
        if (items[0] == 0) {
          first.pass();
          return doubled(items);
        }
        throw thrown;
      },
      {});
  std::mutex mutex;
  std::set<const void*> texts;
  std::atomic<int> whole = 0;
  std::latch all_caught(10);
  call_behind_a_flush(b, first, 10, [&](int i) {
    try {
      b.call(i);
    } catch (const error& e) {
      whole +=
          e.code() == thrown.code() && e.outcome_unknown() && std::string_view(e.what()) == thrown.what();
      all_caught.arrive_and_wait();  // so that none is freed while another's address is taken
      const std::scoped_lock lock(mutex);
      texts.insert(e.what());
    }
  });
  EXPECT_EQ(whole, 10);
  EXPECT_EQ(texts.size(), 10u);
}

TEST(batcher, works_again_after_a_failure) {
  bool down = true;
  int_batcher b(
      [&](std::span<const int> items) {
        if (down) throw error(errc::store_unavailable, "disk");
        return doubled(items);
      },
      {});
  EXPECT_EQ(code_of([&] { b.call(1); }), errc::store_unavailable);
  down = false;
  EXPECT_EQ(b.call(1), 2);
}

TEST(batcher, an_exception_that_is_no_settle_error_reaches_every_caller_too) {
  int_batcher b([](std::span<const int>) -> std::vector<int> { throw std::runtime_error("odd"); }, {});
  EXPECT_THROW(b.call(1), std::runtime_error);
}

TEST(batcher, more_callers_than_its_queue_holds_are_refused_at_once) {
  gate first;
  int_batcher b(
      [&](std::span<const int> items) {
        if (items[0] == 0) first.pass();
        return doubled(items);
      },
      {.batch_max = 64, .queue_max = 3});
  std::vector<std::jthread> callers;
  callers.emplace_back([&] { b.call(0); });
  first.await_entered();
  for (int i = 1; i <= 3; ++i) callers.emplace_back([&, i] { b.call(i); });
  while (b.waiting_count() < 3) std::this_thread::yield();
  EXPECT_EQ(code_of([&] { b.call(4); }), errc::store_busy);
  first.open();
}

TEST(batcher, serves_many_threads_without_losing_or_mixing_up_a_result) {
  int_batcher b([](std::span<const int> items) { return doubled(items); },
                {.batch_max = 5, .queue_max = 1000});
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> callers;
    for (int t = 0; t < 8; ++t)
      callers.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) right += b.call(t * 1000 + i) == 2 * (t * 1000 + i);
      });
  }
  EXPECT_EQ(right, 4000);
  EXPECT_EQ(b.waiting_count(), 0u);
}

TEST(batcher_death, a_flush_that_forgets_a_result_is_a_bug_that_stops_the_process) {
  int_batcher b([](std::span<const int>) { return std::vector<int>{}; }, {});
  EXPECT_DEATH(b.call(1), "one result per item");
}

}  // namespace
}  // namespace settle
