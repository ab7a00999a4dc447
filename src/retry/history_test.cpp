#include "retry/history.hpp"

#include <gtest/gtest.h>

namespace settle::retry {
namespace {

timestamp at(std::int64_t microseconds) { return timestamp(duration(microseconds)); }

TEST(retry_history, are_stored_as_json_and_read_back) {
  const std::vector<failed_attempt> history{{at(7), failure_class::transient, "locked"},
                                            {at(8), failure_class::poison, "a \"quoted\"\nline"}};
  const auto text = history_text(history);
  EXPECT_EQ(text, R"([{"at":7,"class":"transient","error":"locked"},)"
                  R"({"at":8,"class":"poison","error":"a \"quoted\"\nline"}])");
  const auto read = read_history(text);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].at, at(7));
  EXPECT_EQ(read[0].why, failure_class::transient);
  EXPECT_EQ(read[1].error, "a \"quoted\"\nline");
  EXPECT_EQ(history_text(std::vector<failed_attempt>{}), "[]");
}

TEST(retry_history, are_kept_up_to_the_last_hundred_and_errors_up_to_their_beginning) {
  std::vector<failed_attempt> history;
  for (int i = 0; i < 250; ++i) history.push_back({at(i), failure_class::poison, std::string(5000, 'x')});
  const auto read = read_history(history_text(history));
  ASSERT_EQ(read.size(), 100u);
  EXPECT_EQ(read.front().at, at(150));
  EXPECT_EQ(read.back().at, at(249));
  EXPECT_EQ(read.back().error, std::string(1000, 'x'));
}

TEST(retry_history, that_nobody_can_read_are_left_out) {
  for (const auto* text :
       {"", "{", "7", "[7]", R"([{"at":"x","class":"poison","error":""}])", R"([{"at":1}])"})
    EXPECT_TRUE(read_history(text).empty()) << text;
  EXPECT_EQ(read_history(R"([{"at":1,"class":"of tomorrow","error":""}])")[0].why, failure_class::poison);
}

}  // namespace
}  // namespace settle::retry
