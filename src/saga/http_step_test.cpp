#include "settle/http_step.hpp"

#include <gtest/gtest.h>

#include <set>

#include "saga/http_headers.hpp"

namespace settle {

inline void PrintTo(http_verdict of, std::ostream* out) {
  constexpr const char* names[] = {"done", "refused", "not made", "unknown"};
  *out << names[static_cast<int>(of)];
}

namespace {

http::client_result answered(int status) {
  http::client_result made{.how = http::delivery::answered};
  made.answer.status = status;
  return made;
}

// Proves S6
TEST(http_steps, are_judged_by_the_status_of_their_answer) {
  const std::set<int> not_made{401, 407, 423, 429}, nobody_knows{408, 409, 425};
  for (int status = 200; status < 600; ++status) {
    auto expected = http_verdict::unknown;
    if (status < 300)
      expected = http_verdict::done;
    else if (not_made.contains(status))
      expected = http_verdict::not_made;
    else if (status >= 400 && status < 500 && !nobody_knows.contains(status))
      expected = http_verdict::refused;
    EXPECT_EQ(judge(answered(status)), expected) << status;
  }
  EXPECT_EQ(judge(answered(404), {.also_done = {404}}), http_verdict::done);
}

// Proves S6
TEST(http_steps, without_an_answer_are_judged_by_whether_they_were_sent) {
  EXPECT_EQ(judge({.how = http::delivery::not_sent}), http_verdict::not_made);
  EXPECT_EQ(judge({.how = http::delivery::unknown}), http_verdict::unknown);
}

// Proves S7
TEST(http_steps, say_in_headers_what_participants_read) {
  http::request asked;
  const saga_call call{saga_id(uuid({1, 2, 3})), "1.0/zahlung ä%#2", saga_op::undo, 17};
  sagas::write_call(asked.headers, call);
  EXPECT_EQ(asked.headers.find("Saga-Step"), "1.0/zahlung%20%C3%A4%25#2");
  const auto read = saga_call::from(asked);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->saga, call.saga);
  EXPECT_EQ(read->step, call.step);
  EXPECT_EQ(read->op, call.op);
  EXPECT_EQ(read->epoch, call.epoch);
}

// Proves S7
TEST(http_steps, with_headers_that_are_missing_or_wrong_are_nobodys) {
  const auto changed = [](const std::string& name, const char* value) {
    http::request asked;
    sagas::write_call(asked.headers, {saga_id(uuid({1})), "charge", saga_op::act, 1});
    if (value == nullptr)
      asked.headers.remove(name);
    else
      asked.headers.set(name, value);
    return saga_call::from(asked).has_value();
  };
  EXPECT_TRUE(changed("Saga-Op", "undo"));
  for (const auto* name : {"Saga-Id", "Saga-Step", "Saga-Op", "Saga-Epoch"}) {
    EXPECT_FALSE(changed(name, nullptr)) << name;
    EXPECT_FALSE(changed(name, "")) << name;
  }
  for (const auto& [name, value] : {std::pair("Saga-Id", "7"),
                                    {"Saga-Step", "%zz"},
                                    {"Saga-Op", "DO"},
                                    {"Saga-Epoch", "-1"},
                                    {"Saga-Epoch", "1x"},
                                    {"Saga-Epoch", "99999999999999999999"}})
    EXPECT_FALSE(changed(name, value)) << name << value;
  http::request twice;
  sagas::write_call(twice.headers, {saga_id(uuid({1})), "charge", saga_op::act, 1});
  twice.headers.add("Saga-Epoch", "2");
  EXPECT_FALSE(saga_call::from(twice));
}

}  // namespace
}  // namespace settle
