#include "lock/waiting_line.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace settle::locking {
namespace {

using namespace std::chrono_literals;
using steady = waiting_line::steady;

TEST(waiting_line, comes_in_order_of_arrival_and_per_name) {
  waiting_line line;
  const std::string a = "a", b = "b";
  std::vector<int> order;
  std::mutex mutex;
  std::vector<std::jthread> later;
  {
    waiting_line::place first(line, a);
    EXPECT_TRUE(first.await_first(steady::now(), {}));
    std::vector<std::unique_ptr<waiting_line::place>> places;
    for (int n = 0; n < 3; ++n) places.push_back(std::make_unique<waiting_line::place>(line, a));
    for (int n = 2; n >= 0; --n)
      later.emplace_back([&, n, own = std::move(places[n])]() mutable {
        EXPECT_TRUE(own->await_first(steady::now() + 60s, {}));
        const std::scoped_lock lock(mutex);
        order.push_back(n);
        own.reset();
      });
    waiting_line::place other(line, b);
    EXPECT_TRUE(other.await_first(steady::now(), {})) << "another name, another line";
    waiting_line::place last(line, a);
    EXPECT_FALSE(last.await_first(steady::now() + 1ms, {})) << "its time was up before its turn";
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_FALSE(last.await_first(steady::now() + 60s, stopped.get_token()));
  }
  later.clear();
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(waiting_line, a_release_ends_the_pause_also_if_it_came_before) {
  waiting_line line;
  const std::string name = "a";
  line.released(name);  // nobody waits
  waiting_line::place own(line, name);
  line.released("b");
  line.released(name);
  const auto started = steady::now();
  own.doze(60s, {});
  EXPECT_LT(steady::now() - started, 30s);
  std::jthread releasing([&] { line.released(name); });
  own.doze(60s, {});
  own.doze(1ms, {});
  EXPECT_LT(steady::now() - started, 30s);
}

}  // namespace
}  // namespace settle::locking
