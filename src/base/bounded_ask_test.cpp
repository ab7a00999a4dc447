#include "base/bounded_ask.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace settle {
namespace {

constexpr auto long_enough = std::chrono::seconds(20);

TEST(bounded_asks, give_the_answer_of_a_question_that_is_quick) {
  bounded_ask<int> asked([] { return 42; });
  asked.begin();
  EXPECT_EQ(asked.wait(long_enough), 42);
}

// Proves D7
TEST(bounded_asks, wait_no_longer_than_they_are_told_and_ask_once_while_nothing_answers) {
  std::promise<void> let_go;
  std::atomic<int> questions = 0;
  bounded_ask<int> asked([&] {
    if (++questions == 1) let_go.get_future().wait();
    return questions.load();
  });
  for (int i = 0; i < 3; ++i) {
    asked.begin();
    EXPECT_EQ(asked.wait(std::chrono::milliseconds(1)), std::nullopt);
  }
  EXPECT_EQ(questions, 1);
  let_go.set_value();
  EXPECT_EQ(asked.wait(long_enough), 1);
  asked.begin();
  EXPECT_EQ(asked.wait(long_enough), 2) << "a new question, not the old answer";
}

}  // namespace
}  // namespace settle
