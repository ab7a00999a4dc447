#include "settle/retry_request.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>

#include "settle/ids.hpp"
#include "settle/testing.hpp"
#include "support/expect_error.hpp"
#include "support/golden.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::code_of;

retry_options policy(const boost::json::value& from) {
  const auto ms = [&](const char* name) { return milliseconds(from.at(name).to_number<std::int64_t>()); };
  return {.attempts_max = from.at("attempts_max").to_number<int>(),
          .deadline = ms("deadline_ms"),
          .first_wait = ms("first_wait_ms"),
          .wait_max = ms("wait_max_ms")};
}

// Proves I9
TEST(retry_request, decides_as_every_other_client_helper) {
  const auto all = test::golden(SETTLE_SOURCE, "retry.json");
  const timestamp now(milliseconds(all.at("now_ms").to_number<std::int64_t>()));
  ASSERT_GT(all.at("cases").as_array().size(), 80u);
  for (const auto& one : all.at("cases").as_array()) {
    SCOPED_TRACE(one.at("name").as_string());
    request_answer answer{.status = one.at("status").to_number<int>()};
    if (const auto* headers = one.as_object().if_contains("headers"))
      for (const auto& [name, value] : headers->as_object())
        answer.headers.emplace_back(name, std::string(value.as_string()));
    const auto* own = one.as_object().if_contains("policy");
    const auto decision =
        decide_retry(answer,
                     {.attempt = one.at("attempt").to_number<int>(),
                      .elapsed = milliseconds(one.at("elapsed_ms").to_number<std::int64_t>()),
                      .now = now,
                      .random = one.at("random").to_number<double>()},
                     policy(own != nullptr ? *own : all.at("policy")));
    const auto& expected = one.at("expect").as_object();
    if (const auto* wait = expected.if_contains("wait_ms")) {
      EXPECT_TRUE(decision.again);
      EXPECT_EQ(std::chrono::floor<milliseconds>(decision.wait).count(), wait->to_number<std::int64_t>());
    } else {
      EXPECT_FALSE(decision.again);
      EXPECT_EQ(to_string(decision.end), expected.at("end").as_string());
      const auto* result = expected.if_contains("result");
      EXPECT_EQ(decision.result, result != nullptr && result->as_bool());
    }
  }
}

TEST(retry_request, reads_headers_by_any_letters_and_joins_several) {
  const request_answer answer{
      .headers = {{"Retry-After", "\t5 "}, {"X-A", "1"}, {"x-a", "2"}, {"Empty", " "}}};
  EXPECT_EQ(answer.header("RETRY-AFTER"), "5");
  EXPECT_EQ(answer.header("X-a"), "1, 2");
  EXPECT_EQ(answer.header("empty"), "");
  EXPECT_EQ(answer.header("retry"), "");
}

struct no_random final : random_source {
  std::uint64_t next() override { return 0; }
};

// A server that plays a script and then does the work of each key once; time moves only by waiting.
struct world {
  testing::manual_time time;
  no_random random;
  environment env{.time = &time, .random = &random};
  std::vector<request_answer> script;
  std::vector<std::string> keys;
  std::vector<duration> waits, left;
  std::map<std::string, int> done;

  request_answer work(const std::string& key) {
    const bool first = ++done[key] == 1;
    return {.status = 201, .headers = {{"Idempotent-Replayed", first ? "false" : "true"}}, .body = "order 1"};
  }

  request_sender sender() {
    return [this](const request_key& key, const request_attempt& attempt) {
      keys.push_back(key.header());
      left.push_back(attempt.time_left);
      EXPECT_EQ(static_cast<std::size_t>(attempt.number), keys.size());
      return keys.size() <= script.size() ? script[keys.size() - 1] : work(key.text());
    };
  }

  retry_options options() {
    return {.sleep = [this](duration wait, const std::stop_token&) {
      waits.push_back(wait);
      time.advance(wait);
    }};
  }
};

// Proves I9
TEST(retry_request, sends_one_key_on_every_attempt) {
  world w;
  w.script = {{}, {.status = 503}, {.status = 429, .headers = {{"retry-after", "4"}}}, {.status = 409}};
  const request_key key("k 1");
  const auto result = retry_request(key, w.sender(), w.options(), w.env);
  EXPECT_EQ(result.end, request_end::answered);
  EXPECT_EQ(result.answer.status, 201);
  EXPECT_EQ(result.answer.body, "order 1");
  EXPECT_FALSE(result.replayed);
  EXPECT_EQ(result.attempts, 5);
  EXPECT_EQ(w.keys, std::vector<std::string>(5, "\"k 1\""));
  EXPECT_EQ(w.waits, (std::vector<duration>{250ms, 500ms, 4s, 2s}));
  EXPECT_EQ(w.left, (std::vector<duration>{60s, 59750ms, 59250ms, 55250ms, 53250ms}));
}

// Proves I9
TEST(retry_request, says_whether_the_answer_is_replayed) {
  world w;
  w.work("k");  // an earlier attempt, whose answer was lost
  EXPECT_TRUE(retry_request(request_key("k"), w.sender(), w.options(), w.env).replayed);
}

// Proves I9
TEST(retry_request, ends_at_a_refusal_and_at_a_recorded_failure) {
  for (const auto& answer : {request_answer{.status = 422},
                             {.status = 400},
                             {.status = 500, .headers = {{"Idempotent-Replayed", "true"}}}}) {
    world w;
    w.script = {answer};
    const auto result = retry_request(request_key("k"), w.sender(), w.options(), w.env);
    EXPECT_EQ(result.end, request_end::answered);
    EXPECT_EQ(result.answer.status, answer.status);
    EXPECT_EQ(w.keys.size(), 1u);
  }
}

// Proves I9: a new key after the login would act twice.
TEST(retry_request, is_unsure_when_a_refusal_follows_an_attempt_of_unknown_fate) {
  world w;
  w.script = {{}, {.status = 401}};
  const auto refused = retry_request(request_key("k"), w.sender(), w.options(), w.env);
  EXPECT_EQ(refused.end, request_end::answered);
  EXPECT_TRUE(refused.unsure);
  w.script = {{.status = 401}};
  w.keys.clear();
  EXPECT_FALSE(retry_request(request_key("k"), w.sender(), w.options(), w.env).unsure);
  auto options = w.options();
  options.sent_before = true;
  for (const int status : {401, 201}) {
    w.script = {{.status = status}};
    w.keys.clear();
    EXPECT_EQ(retry_request(request_key("k"), w.sender(), options, w.env).unsure, status == 401)
        << "by a call that has ended without a result";
  }
  w.script = {{}};
  w.keys.clear();
  EXPECT_FALSE(retry_request(request_key("k"), w.sender(), w.options(), w.env).unsure);
}

// Proves I9: that failure was undone, and the first attempt may still be at work.
TEST(retry_request, is_unsure_when_a_failure_that_was_not_recorded_follows_an_attempt_of_unknown_fate) {
  for (const auto* replayed : {"false", "true"}) {
    world w;
    w.script = {{}, {.status = 500, .headers = {{"Idempotent-Replayed", replayed}}}};
    const auto failed = retry_request(request_key("k"), w.sender(), w.options(), w.env);
    EXPECT_EQ(failed.answer.status, 500);
    EXPECT_EQ(failed.unsure, replayed == std::string_view("false"));
  }
}

TEST(retry_request, gives_up_after_its_attempts_with_the_last_answer_that_came) {
  world w;
  w.script = {{.status = 503, .body = "later"}, {}, {}};
  auto options = w.options();
  options.attempts_max = 3;
  const auto result = retry_request(request_key("k"), w.sender(), options, w.env);
  EXPECT_EQ(result.end, request_end::attempts_used);
  EXPECT_EQ(result.answer.body, "later");
  EXPECT_EQ(result.attempts, 3);
}

TEST(retry_request, gives_up_before_a_wait_that_its_deadline_does_not_allow) {
  world w;
  w.script = {{}, {.status = 429, .headers = {{"Retry-After", "60"}}}};
  const auto result = retry_request(request_key("k"), w.sender(), w.options(), w.env);
  EXPECT_EQ(result.end, request_end::out_of_time);
  EXPECT_EQ(result.answer.status, 429);
  EXPECT_EQ(w.waits, std::vector<duration>{250ms});
}

TEST(retry_request, stops_when_asked_while_it_waits) {
  world w;
  w.script = {{.status = 503}};
  std::stop_source stop;
  const retry_options options{.sleep = [&](duration, const std::stop_token&) { stop.request_stop(); }};
  const auto result = retry_request(request_key("k"), w.sender(), options, w.env, stop.get_token());
  EXPECT_EQ(result.end, request_end::stopped);
  EXPECT_EQ(result.answer.status, 503);
  EXPECT_EQ(w.keys.size(), 1u);
}

TEST(retry_request, does_not_sleep_once_it_is_asked_to_stop) {
  world w;
  std::stop_source stop;
  const request_sender send = [&](const request_key&, const request_attempt&) {
    stop.request_stop();
    return request_answer{.status = 503, .headers = {{"Retry-After", "50"}}};
  };
  EXPECT_EQ(retry_request(request_key("k"), send, {}, w.env, stop.get_token()).end, request_end::stopped);
  EXPECT_EQ(retry_request(request_key("k"), send, {}, w.env, stop.get_token()).attempts, 0);
}

TEST(retry_request, waits_in_real_time_where_nothing_else_is_given) {
  world w;
  w.script = {{.status = 503}};
  const auto result = retry_request(request_key("k"), w.sender(), {.first_wait = 1ms, .wait_max = 1ms},
                                    {.random = &w.random});
  EXPECT_EQ(result.attempts, 2);
}

TEST(retry_request, passes_on_what_the_sender_throws) {
  world w;
  const request_sender broken = [](const request_key&, const request_attempt&) -> request_answer {
    throw std::runtime_error("no route");
  };
  EXPECT_THROW(retry_request(request_key("k"), broken, w.options(), w.env), std::runtime_error);
}

TEST(retry_request, refuses_limits_that_are_none) {
  world w;
  const auto refused = [&](const retry_options& options) {
    return code_of([&] { retry_request(request_key("k"), w.sender(), options, w.env); });
  };
  EXPECT_EQ(refused({.attempts_max = 0}), errc::invalid_argument);
  EXPECT_EQ(refused({.attempts_max = 1001}), errc::invalid_argument);
  EXPECT_EQ(refused({.deadline = 0s}), errc::invalid_argument);
  EXPECT_EQ(refused({.deadline = duration::max()}), errc::invalid_argument);
  EXPECT_EQ(refused({.first_wait = -1s}), errc::invalid_argument);
  EXPECT_EQ(refused({.wait_max = 0s}), errc::invalid_argument);
  EXPECT_TRUE(w.keys.empty());
}

TEST(retry_request, spreads_its_waits) {
  world w;
  testing::seeded_random random(5);
  w.env.random = &random;
  std::vector<duration> waits;
  for (int i = 0; i < 200; ++i) {
    w.keys.clear();
    w.waits.clear();
    w.script = {{.status = 503}};
    retry_request(request_key("k"), w.sender(), w.options(), w.env);
    waits.push_back(w.waits.at(0));
  }
  const auto [least, most] = std::ranges::minmax(waits);
  EXPECT_GE(least, 250ms);
  EXPECT_LT(least, 270ms);
  EXPECT_GT(most, 480ms);
  EXPECT_LT(most, 500ms);
}

// A server whose record of keys is a file: it survives the client's process.
class file_server {
 public:
  explicit file_server(std::string path) : path_(std::move(path)) {}
  ~file_server() { std::remove(path_.c_str()); }
  void reset() { std::ofstream(path_, std::ios::trunc); }

  request_answer operator()(const request_key& key, const request_attempt&) {
    const auto known = keys();
    const bool replayed = std::ranges::count(known, key.text()) > 0;
    if (!replayed) std::ofstream(path_, std::ios::app) << key.text() << std::endl;
    return {.status = 201, .headers = {{"Idempotent-Replayed", replayed ? "true" : "false"}}};
  }

  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

 private:
  std::string path_;
};

// Proves I9: whoever has stored the key before the first attempt may die anywhere and ask again.
TEST(retry_request, acts_once_after_a_failure_or_a_kill_at_every_fault_point) {
  file_server server(::testing::TempDir() + "retry_request_" + std::to_string(::getpid()));
  const auto key = request_key::make();
  const auto explored = testing::explore({
      .prepare = [&] { server.reset(); },
      .run = [&](fault_points& faults) { retry_request(key, std::ref(server), {}, {.faults = &faults}); },
      .recover = [&] { EXPECT_EQ(retry_request(key, std::ref(server)).answer.status, 201); },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(server.keys(), std::vector<std::string>{key.text()}) << where;
          },
  });
  EXPECT_EQ(explored.points, (std::vector<std::string>{"request.send.before", "request.send.after"}));
}

}  // namespace
}  // namespace settle
