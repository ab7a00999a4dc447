// Load for worlds that run by themselves, and what must be true after a disturbance.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "settle/outbox.hpp"
#include "support/order_world.hpp"

namespace settle::test {

// Three producers, each the only one of its customer, so that there is an order to keep. What is refused is
// tried again until it is known to be committed.
class producers {
 public:
  explicit producers(order_world& world) {
    for (int first = 0; first < 3; ++first)
      threads_.emplace_back([this, &world, first](const std::stop_token& stop) {
        for (int number = first; !stop.stop_requested(); number += 3) {
          place(world, number);
          ++placed;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
      });
  }

  void stop() { threads_.clear(); }

  std::atomic<std::int64_t> placed = 0;

 private:
  static void place(order_world& world, int number) {
    while (true) try {
        world.place(number);
        return;
      } catch (const error& e) {
        if (!e.retryable() && !e.outcome_unknown()) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
  }

  std::vector<std::jthread> threads_;
};

inline std::int64_t shipped(order_world& world) {
  try {
    return world.warehouse().read().execute("select count(*) from shipments")[0][0].integer();
  } catch (const error&) {  // of a connection from before
    return 0;
  }
}

inline void await(const std::function<bool()>& true_at_last) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (!true_at_last() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Everything was applied once, and nobody was charged.
inline void expect_unharmed(order_world& world, std::int64_t placed,
                            const std::function<bool(const verify_report&)>& is_intact) {
  const auto report = world.verify();
  EXPECT_TRUE(is_intact(report));
  for (const auto& found : report.findings)
    if (!is_intact(report)) ADD_FAILURE() << found.kind << " " << found.subject << " " << found.detail;
  EXPECT_EQ(report.committed, placed);
  EXPECT_EQ(report.applied, placed);
  EXPECT_EQ(report.pending + report.given_up, 0);
  EXPECT_TRUE(failed_events(world.orders()).empty());
  EXPECT_TRUE(dead_letters(world.warehouse()).empty());
  EXPECT_EQ(world.consumer().counts().failures, 0) << "it is nobody's fault";
  EXPECT_EQ(world.log().count("outbox_event_rejected"), 0u);
}

}  // namespace settle::test
