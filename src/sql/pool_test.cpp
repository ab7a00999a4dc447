#include "sql/pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::sql {
namespace {

using namespace std::chrono_literals;
using test::code_of;

struct counters {
  std::atomic<int> open = 0;
  std::atomic<int> opened = 0;
  std::atomic<bool> broken = false;
  std::atomic<bool> refusing = false;
};

class plain_connection final : public connection {
 public:
  explicit plain_connection(counters& of) : of_(of) {
    ++of_.open;
    ++of_.opened;
  }
  ~plain_connection() override { --of_.open; }
  dialect speaks() const override { return dialect::sqlite; }
  void begin_write(std::stop_token) override {}
  void begin_read() override {}
  void commit() override {}
  void rollback() noexcept override {}
  result execute(const query&, std::span<const value>) override { return {}; }
  result execute(std::string_view, std::span<const value>) override { return {}; }
  std::vector<std::int64_t> execute_many(const query&, std::span<const parameters>) override { return {}; }
  void execute_script(std::string_view) override {}
  bool reusable() noexcept override { return !of_.broken; }

  int used_by = 0;  // not atomic on purpose: the thread sanitizer sees a connection given to two threads

 private:
  counters& of_;
};

class pool_of : public ::testing::Test {
 protected:
  std::unique_ptr<pool> make(int connections_max, duration acquire_timeout = 10s) {
    return std::make_unique<pool>(pool::limits{"test", connections_max, acquire_timeout},
                                  [this](const std::stop_token&) -> std::unique_ptr<connection> {
                                    if (counts_.refusing) throw error(errc::store_unavailable, "down");
                                    return std::make_unique<plain_connection>(counts_);
                                  });
  }
  counters counts_;
};

TEST_F(pool_of, connections_opens_on_demand_and_keeps_what_comes_back) {
  auto three = make(3);
  auto first = three->acquire({});
  auto second = three->acquire({});
  EXPECT_EQ(counts_.opened, 2);
  three->release(std::move(first));
  three->release(std::move(second));
  first = three->acquire({});
  second = three->acquire({});
  EXPECT_EQ(counts_.opened, 2);
  three->release(std::move(first));
  three->release(std::move(second));
}

TEST_F(pool_of, none_is_refused) {
  EXPECT_EQ(code_of([&] { make(0); }), errc::invalid_argument);
}

TEST_F(pool_of, connections_that_are_all_in_use_says_what_to_do) {
  auto one = make(1, 20ms);
  auto held = one->acquire({});
  try {
    one->acquire({});
    ADD_FAILURE() << "two at once";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::store_busy);
    EXPECT_NE(std::string(e.what()).find("connections_max"), std::string::npos) << e.what();
  }
  one->release(std::move(held));
  EXPECT_EQ(code_of([&] { one->release(one->acquire({})); }), std::nullopt);
}

TEST_F(pool_of, connections_that_are_all_in_use_can_be_waited_for_until_the_caller_stops) {
  auto one = make(1);
  auto held = one->acquire({});
  std::stop_source stop;
  std::optional<errc> outcome;
  std::jthread waiter([&] { outcome = code_of([&] { one->acquire(stop.get_token()); }); });
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(outcome, errc::cancelled);
  one->release(std::move(held));
}

TEST_F(pool_of, connections_drops_broken_ones_and_opens_new_ones) {
  auto two = make(2);
  two->release(two->acquire({}));
  counts_.broken = true;  // while it was idle
  auto next = two->acquire({});
  EXPECT_EQ(counts_.opened, 2);
  two->release(std::move(next));  // and when it comes back
  EXPECT_EQ(counts_.open, 0);
}

TEST_F(pool_of, connections_is_not_worn_out_by_failures_to_open) {
  auto one = make(1, 50ms);
  counts_.refusing = true;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(code_of([&] { one->acquire({}); }), errc::store_unavailable);
  counts_.refusing = false;
  EXPECT_EQ(code_of([&] { one->release(one->acquire({})); }), std::nullopt);
}

TEST_F(pool_of, connections_lets_a_waiter_open_one_when_a_broken_one_comes_back) {
  auto one = make(1);
  auto held = one->acquire({});
  std::latch started(1);
  std::optional<errc> outcome;
  std::jthread waiter([&] {
    started.count_down();
    outcome = code_of([&] { one->release(one->acquire({})); });
  });
  started.wait();
  counts_.broken = true;
  one->release(std::move(held));
  waiter.join();
  EXPECT_EQ(outcome, std::nullopt);
}

TEST_F(pool_of, few_connections_serves_many_threads_and_never_one_connection_to_two) {
  constexpr int threads = 16, rounds = 500, connections = 3;
  auto few = make(connections);
  std::atomic<int> at_once = 0, most = 0, failed = 0;
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&] {
        for (int i = 0; i < rounds; ++i) {
          auto mine = few->acquire({});
          const int now = ++at_once;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          auto& plain = static_cast<plain_connection&>(*mine);
          if (plain.used_by++ != 0) ++failed;
          std::this_thread::yield();
          if (--plain.used_by != 0) ++failed;
          --at_once;
          few->release(std::move(mine));
        }
      });
  }
  EXPECT_EQ(failed, 0);
  EXPECT_LE(most, connections);
  EXPECT_LE(counts_.opened, connections);
}

}  // namespace
}  // namespace settle::sql
