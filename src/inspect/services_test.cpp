#include "inspect/services.hpp"

#include <gtest/gtest.h>

#include <latch>

namespace settle {
namespace {

using namespace std::chrono_literals;
using inspect::broker_state;
using inspect::service_state;
using inspect::services_inquiry;

service_state waiting(std::int64_t events) {
  service_state made;
  made.backlog.pending = events;
  return made;
}

// Proves D7
TEST(services_inquiry, tells_the_state_of_each_service_and_broker_by_name) {
  services_inquiry all({{"billing", [] { return waiting(1); }}, {"orders", [] { return waiting(2); }}},
                       {{"main", [] { return broker_state{"broker.db", {}, {}, {}}; }}});
  const auto told = all.ask(1min);
  ASSERT_EQ(told.services.size(), 2u);
  EXPECT_EQ(told.services[0].name, "billing");
  EXPECT_EQ(told.services[1].name, "orders");
  EXPECT_EQ(told.services[1].state->backlog.pending, 2);
  ASSERT_EQ(told.brokers.size(), 1u);
  EXPECT_EQ(told.brokers[0].state->name, "broker.db");
  EXPECT_TRUE(told.complete());
  EXPECT_FALSE(all.is_waiting());
}

// Proves D7
TEST(services_inquiry, asks_the_others_while_one_hangs_and_says_that_it_did_not_answer) {
  std::latch mended(1);
  services_inquiry all({{"hung",
                         [&] {
                           mended.wait();
                           return waiting(3);
                         }},
                        {"orders", [] { return waiting(2); }}},
                       {});
  auto told = all.ask(50ms);
  EXPECT_FALSE(told.services[0].state);
  EXPECT_EQ(told.services[0].name, "hung");
  EXPECT_EQ(told.services[0].code, errc::store_unavailable);
  EXPECT_EQ(told.services[0].why, "no answer within 0.05 s");
  EXPECT_EQ(told.services[1].state->backlog.pending, 2);
  EXPECT_FALSE(told.complete());
  EXPECT_TRUE(all.is_waiting());
  mended.count_down();
  told = all.ask(1min);
  EXPECT_EQ(told.services[0].state->backlog.pending, 3) << "the answer to the first question";
  EXPECT_TRUE(told.complete());
}

TEST(services_inquiry, says_why_a_store_cannot_be_read) {
  services_inquiry all(
      {{"orders", []() -> service_state { throw error(errc::schema_missing, "there are no tables"); }}},
      {{"main", []() -> broker_state { throw std::runtime_error("out of luck"); }}});
  const auto told = all.ask(1min);
  EXPECT_EQ(told.services[0].code, errc::schema_missing);
  EXPECT_EQ(told.services[0].why, "there are no tables");
  EXPECT_EQ(told.brokers[0].why, "out of luck");
  EXPECT_FALSE(told.complete());
}

}  // namespace
}  // namespace settle
