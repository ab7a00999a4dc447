#include "base/failed_attempts.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

timestamp at(std::int64_t microseconds) { return timestamp(duration(microseconds)); }

TEST(failed_attempts, are_stored_as_json_and_read_back) {
  const std::vector<failed_attempt> history{{at(7), failure_class::transient, "locked"},
                                            {at(8), failure_class::poison, "a \"quoted\"\nline"}};
  const auto text = to_json(history);
  EXPECT_EQ(text, R"([{"at":7,"class":"transient","error":"locked"},)"
                  R"({"at":8,"class":"poison","error":"a \"quoted\"\nline"}])");
  const auto read = failed_attempts_from_json(text);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].at, at(7));
  EXPECT_EQ(read[0].why, failure_class::transient);
  EXPECT_EQ(read[1].error, "a \"quoted\"\nline");
  EXPECT_EQ(to_json(std::vector<failed_attempt>{}), "[]");
}

TEST(failed_attempts, are_kept_up_to_the_last_hundred_and_errors_up_to_their_beginning) {
  std::vector<failed_attempt> history;
  for (int i = 0; i < 250; ++i) history.push_back({at(i), failure_class::poison, std::string(5000, 'x')});
  const auto read = failed_attempts_from_json(to_json(history));
  ASSERT_EQ(read.size(), 100u);
  EXPECT_EQ(read.front().at, at(150));
  EXPECT_EQ(read.back().at, at(249));
  EXPECT_EQ(read.back().error, std::string(1000, 'x'));
}

TEST(failed_attempts, that_nobody_can_read_are_left_out) {
  for (const auto* text :
       {"", "{", "7", "[7]", R"([{"at":"x","class":"poison","error":""}])", R"([{"at":1}])"})
    EXPECT_TRUE(failed_attempts_from_json(text).empty()) << text;
  EXPECT_EQ(failed_attempts_from_json(R"([{"at":1,"class":"of tomorrow","error":""}])")[0].why,
            failure_class::poison);
}

}  // namespace
}  // namespace settle
