#include "dead_letter/foreign_failures.hpp"

#include <gtest/gtest.h>

#include "base/time_text.hpp"

namespace settle::dlq {
namespace {

foreign_failures read(attributes headers) {
  message m;
  m.extensions = std::move(headers);
  return read_foreign_failures(m);
}

// Proves D1
TEST(foreign_failures, of_rabbitmq_are_read_oldest_first_with_queue_reason_count_and_time) {
  const auto found = read({{"xdeath",
                            R"([{"count":1,"exchange":"","queue":"retry","reason":"expired",
                                 "routing-keys":["retry"],"time":1769860860},
                                {"count":3,"exchange":"payments","queue":"payments.in","reason":"rejected",
                                 "routing-keys":["created","eu"],"time":1769860800}])"}});
  ASSERT_EQ(found.history.size(), 2u);
  EXPECT_EQ(found.attempts, 4);
  EXPECT_EQ(found.history[0].error,
            "in queue payments.in it was rejected by its reader, 3 times (exchange payments, routing key "
            "created, eu)");
  EXPECT_EQ(to_rfc3339(found.history[0].at), "2026-01-31T12:00:00.000000Z");
  EXPECT_NE(found.history[1].error.find("waited for too long"), std::string::npos);
}

// Proves D1
TEST(foreign_failures, of_frameworks_are_read_from_their_headers) {
  const auto of_masstransit = read({{"mtfaultexceptiontype", "System.TimeoutException"},
                                    {"mtfaultmessage", "the bank is slow"},
                                    {"mtfaulttimestamp", "2026-01-31T12:00:00Z"}});
  ASSERT_EQ(of_masstransit.history.size(), 1u);
  EXPECT_EQ(of_masstransit.history[0].error, "System.TimeoutException: the bank is slow");
  const auto of_watermill = read({{"reasonpoisoned", "no such order"}, {"topicpoisoned", "orders"}});
  ASSERT_EQ(of_watermill.history.size(), 1u);
  EXPECT_EQ(of_watermill.history[0].error, "no such order (in orders)");
  EXPECT_EQ(of_watermill.attempts, 1);
}

TEST(foreign_failures, that_cannot_be_read_are_none) {
  EXPECT_TRUE(read({}).history.empty());
  EXPECT_TRUE(read({{"xdeath", "no list"}}).history.empty());
  EXPECT_TRUE(read({{"xdeath", R"({"count":1})"}}).history.empty());
  EXPECT_EQ(read({{"xdeath", R"([7, {}])"}}).history.size(), 1u) << "what is there is told, however little";
}

}  // namespace
}  // namespace settle::dlq
