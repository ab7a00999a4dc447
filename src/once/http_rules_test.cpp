#include "once/http_rules.hpp"

#include <gtest/gtest.h>

namespace settle::http {
namespace {

idempotency policy() {
  return {.service = "shop", .caller = [](const request&) { return std::optional<std::string>("ann"); }};
}

request post(const std::string& body, header_list headers = {}) {
  return {.method = "POST",
          .target = "/orders?x=1",
          .path = "/orders",
          .headers = std::move(headers),
          .body = body};
}

// Proves I6
TEST(http_rules, two_requests_are_the_same_if_method_target_and_body_are) {
  const auto first = fingerprint_of(policy(), post("{}"));
  EXPECT_EQ(first, fingerprint_of(policy(), post("{}", {{"User-Agent", "other"}})));
  EXPECT_NE(first, fingerprint_of(policy(), post("{ }")));
  auto other = post("{}");
  other.method = "PATCH";
  EXPECT_NE(first, fingerprint_of(policy(), other));
  other = post("{}");
  other.target = "/orders?x=2";
  EXPECT_NE(first, fingerprint_of(policy(), other));
}

// Proves I6
TEST(http_rules, a_policy_may_compare_chosen_fields_of_a_json_body) {
  auto with = policy();
  with.fingerprint_fields = {"amount", "to"};
  const auto first = fingerprint_of(with, post(R"({"amount":1,"to":"bob","at":"10:00"})"));
  EXPECT_EQ(first, fingerprint_of(with, post(R"({ "to": "bob", "amount": 1, "at": "10:01" })")));
  EXPECT_NE(first, fingerprint_of(with, post(R"({"amount":2,"to":"bob"})")));
  EXPECT_NE(first, fingerprint_of(with, post(R"({"amount":1})")));
  EXPECT_NE(fingerprint_of(with, post("no json")), fingerprint_of(with, post("other")))
      << "then the whole body";
  EXPECT_NE(fingerprint_of(with, post(R"({"amount":"1:","to":""})")),
            fingerprint_of(with, post(R"({"amount":"1","to":":"})")));
}

// Proves I8: checkout_session_id, refund_request_id
TEST(http_rules, a_key_may_come_from_a_member_of_the_body_where_there_is_no_header) {
  auto checkout = policy(), refund = policy();
  checkout.key_field = "checkout_session_id";
  refund.key_field = "refund_request_id";
  const auto key = [&](const std::string& body) { return key_of(checkout, post(body)).key; };
  EXPECT_EQ(key(R"({"checkout_session_id":"cs_1","total":1})"), "checkout_session_id:cs_1");
  EXPECT_EQ(key(R"({"checkout_session_id":7})"), "checkout_session_id:7");
  EXPECT_EQ(key_of(refund, post(R"({"refund_request_id":7})")).key, "refund_request_id:7") << "another id";
  EXPECT_EQ(key_of(checkout, post(R"({"checkout_session_id":"cs_1"})", {{"Idempotency-Key", "k-1"}})).key,
            "k-1");
  for (const auto* none : {"", "no json", "[]", "{}", R"({"checkout_session_id":null})"}) {
    const auto refused = key_of(checkout, post(none)).refused;
    ASSERT_TRUE(refused) << none;
    EXPECT_NE(refused->body.find("checkout_session_id"), std::string::npos) << refused->body;
    EXPECT_NE(refused->body.find("idempotency_key_missing"), std::string::npos) << refused->body;
  }
  const auto longest = std::string(255 - std::string("checkout_session_id:").size(), 'x');
  EXPECT_TRUE(key(R"({"checkout_session_id":")" + longest + R"("})"));
  for (const auto& bad : {std::string("\"\""), std::string("true"), std::string("1.5"), std::string("{}"),
                          "\"" + longest + "x\""}) {
    const auto refused = key_of(checkout, post("{\"checkout_session_id\":" + bad + "}")).refused;
    ASSERT_TRUE(refused) << bad;
    EXPECT_NE(refused->body.find("idempotency_key_invalid"), std::string::npos) << refused->body;
  }
  checkout.required = false;
  EXPECT_FALSE(key_of(checkout, post("{}")).key || key_of(checkout, post("{}")).refused);
}

// Proves I6, I8: another reader of the body may take the other one
TEST(http_rules, a_body_with_a_member_twice_has_no_key_and_is_compared_as_a_whole) {
  auto with = policy();
  with.key_field = "id";
  with.fingerprint_fields = {"amount"};
  const auto refused = key_of(with, post(R"({"id":1,"id":2})")).refused;
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 400);
  EXPECT_NE(refused->body.find("twice"), std::string::npos) << refused->body;
  EXPECT_NE(fingerprint_of(with, post(R"({"amount":1,"amount":2})")),
            fingerprint_of(with, post(R"({"amount":2})")));
  EXPECT_NE(fingerprint_of(with, post(R"({"amount":1,"amount":2})")),
            fingerprint_of(with, post(R"({"amount":9,"amount":2})")));
}

// Proves I1
TEST(http_rules, a_key_is_read_in_both_forms_and_refused_where_it_is_none) {
  EXPECT_EQ(key_of(policy(), post("", {{"idempotency-key", "\"k 1\""}})).key, "k 1");
  EXPECT_EQ(key_of(policy(), post("", {{"Idempotency-Key", "k-1"}})).key, "k-1");
  EXPECT_EQ(key_of(policy(), post("")).refused->status, 400);
  EXPECT_EQ(key_of(policy(), post("", {{"Idempotency-Key", "\"k"}})).refused->status, 400);
  EXPECT_EQ(key_of(policy(), post("", {{"Idempotency-Key", "a"}, {"Idempotency-Key", "a"}})).refused->status,
            400);
  auto lax = policy();
  lax.required = false;
  EXPECT_FALSE(key_of(lax, post("")).key || key_of(lax, post("")).refused);
  EXPECT_TRUE(key_of(lax, post("", {{"Idempotency-Key", ""}})).refused) << "sent, and no key";
}

// Proves I1
TEST(http_rules, only_headers_that_belong_to_the_answer_are_recorded) {
  auto with = policy();
  with.headers = {"X-Order"};
  response made{.status = 201, .body = "b"};
  for (const auto* name : {"content-type", "Content-Encoding", "Content-Language", "Location", "ETag", "Link",
                           "x-order", "Set-Cookie", "Date", "X-Other"})
    made.headers.add(name, "v");
  std::vector<std::string> names;
  for (const auto& [name, content] : to_record(with, made).headers) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"content-type", "Content-Encoding", "Content-Language",
                                             "Location", "ETag", "Link", "x-order"}));
  for (const auto* name :
       {"set-cookie", "Date", "Connection", "RateLimit-Limit", "X-RateLimit-Reset", "Retry-After"})
    EXPECT_FALSE(may_be_recorded(name)) << name;
}

TEST(http_rules, the_status_says_what_stays_unless_the_handler_does) {
  auto with = policy();
  const auto kept = [&](int status, std::optional<keeps> said = std::nullopt) {
    return to_record(with, {response{.status = status}, said}).keep;
  };
  EXPECT_EQ(kept(201), keeps::everything);
  EXPECT_EQ(kept(303), keeps::everything);
  EXPECT_EQ(kept(409), keeps::answer);
  EXPECT_EQ(kept(503), keeps::nothing);
  EXPECT_EQ(kept(400, keeps::nothing), keeps::nothing);
  EXPECT_EQ(kept(402, keeps::everything), keeps::everything);
  with.profile = idempotency_profile::stripe;
  EXPECT_EQ(kept(201), keeps::everything);
  EXPECT_EQ(kept(409), keeps::answer);
  EXPECT_EQ(kept(503), keeps::answer);
  EXPECT_EQ(kept(503, keeps::nothing), keeps::nothing);
  with.record.server_error = keeps::nothing;
  EXPECT_EQ(kept(503), keeps::nothing) << "what the route says wins over the profile";
}

TEST(http_rules, the_profile_of_stripe_answers_as_stripe_does) {
  auto stripe = policy();
  stripe.profile = idempotency_profile::stripe;
  EXPECT_EQ(mismatch(stripe, {}).status, 400);
  EXPECT_NE(mismatch(stripe, {}).body.find("\"type\":\"idempotency_error\""), std::string::npos);
  EXPECT_EQ(mismatch(policy(), {}).status, 422);
  EXPECT_EQ(in_flight(policy(), {}).status, 409);
  EXPECT_EQ(in_flight(policy(), {}).headers.find("retry-after"), "1");
}

}  // namespace
}  // namespace settle::http
