// Where a source finds id, type, key and time.
#include "webhook/reading.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "webhook/applying.hpp"
#include "webhook/retry_policy.hpp"

namespace settle::hooks {
namespace {

using namespace std::chrono_literals;

source stripe_source() { return webhook::stripe("stripe", {"secret"}); }

// Proves I8: Stripe's own ids, and the header of Standard Webhooks
TEST(webhook_reading, finds_what_the_usual_sources_say) {
  const request charge{
      .headers = {{"Content-Type", "application/json"}, {"X-Other", "1"}},
      .body =
          R"({"id":"evt_1","type":"charge.succeeded","created":1614265330,"data":{"object":{"id":"ch_7"}}})"};
  const auto read = read_event(stripe_source(), charge);
  ASSERT_TRUE(read.what) << read.error;
  EXPECT_EQ(read.what->source, "stripe");
  EXPECT_EQ(read.what->id, "evt_1");
  EXPECT_EQ(read.what->type, "charge.succeeded");
  EXPECT_EQ(read.what->key, "ch_7");
  EXPECT_EQ(read.what->time, timestamp(1'614'265'330s));
  EXPECT_EQ(read.what->headers, (attributes{{"content-type", "application/json"}}));
  EXPECT_EQ(read.what->body, charge.body);

  const request contact{
      .headers = {{"Webhook-Id", "msg_1"}},
      .body = R"({"type":"contact.created","timestamp":"2022-11-03T20:26:10.344522Z","data":{"id":12}})"};
  const auto other = read_event(webhook::standard("crm", {"whsec_TQ=="}), contact);
  ASSERT_TRUE(other.what) << other.error;
  EXPECT_EQ(other.what->id, "msg_1");
  EXPECT_EQ(other.what->key, "12");
  EXPECT_EQ(other.what->time, timestamp(1'667'507'170'344'522us));
}

// Proves I8: gateway_transaction_id and tx_hash
TEST(webhook_reading, takes_the_id_from_any_member_or_function) {
  auto of = stripe_source();
  of.event_id = in_json{"payment.gateway_transaction_id"};
  of.key = {};
  const request paid{.body = R"({"payment":{"gateway_transaction_id":"gw-1","tx_hash":"0xabc","log":3}})"};
  EXPECT_EQ(read_event(of, paid).what->id, "gw-1");
  of.event_id = [](const request& in) {
    return in.body.find("0xabc") != std::string_view::npos ? std::string("0xabc/3") : std::string();
  };
  EXPECT_EQ(read_event(of, paid).what->id, "0xabc/3");
  EXPECT_FALSE(read_event(of, {.body = "{}"}).what);
}

TEST(webhook_reading, is_nothing_without_a_usable_id) {
  const auto of = stripe_source();
  for (const auto* bad : {"", "{", "[]", "null", "{}", R"({"id":null})", R"({"id":true})", R"({"id":1.5})",
                          R"({"id":""})", R"({"id":{}})", R"({"id":"a\u0000b"})", R"({"ID":"evt"})",
                          "\xff\xfe", R"({"id":"evt","data":{"object":{"id":"a\nb"}}})"})
    EXPECT_FALSE(read_event(of, {.body = bad}).what) << bad;
  EXPECT_FALSE(read_event(of, {.body = R"({"id":")" + std::string(256, 'i') + "\"}"}).what);
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += R"({"id":)";
  EXPECT_FALSE(read_event(of, {.body = deep}).what);
  EXPECT_TRUE(read_event(of, {.body = R"({"id":7,"data":[]})"}).what);
}

TEST(webhook_reading, a_source_must_say_where_its_ids_are_and_trust_only_what_is_signed) {
  const auto refused = [](const source& of) { return test::code_of([&] { check_source(of); }); };
  EXPECT_EQ(refused(stripe_source()), std::nullopt);
  EXPECT_EQ(refused(webhook::standard("crm", {})), std::nullopt);
  auto of = stripe_source();
  of.event_id = {};
  EXPECT_EQ(refused(of), errc::invalid_argument);
  of.event_id = in_header{"X-GitHub-Delivery"};
  EXPECT_EQ(refused(of), errc::invalid_argument);
  of.trust_unsigned_headers = true;
  EXPECT_EQ(refused(of), std::nullopt);
  of.type = in_json{""};
  EXPECT_EQ(refused(of), errc::invalid_argument);
  of = stripe_source();
  of.name = "a\nb";
  EXPECT_EQ(refused(of), errc::invalid_name);
  of = webhook::standard("crm", {});
  of.key = in_header{"webhook-key"};
  EXPECT_EQ(refused(of), errc::invalid_argument);
}

TEST(webhook_reading, knows_three_ways_to_write_a_time) {
  EXPECT_EQ(provider_time("12"), timestamp(12s));
  EXPECT_EQ(provider_time("1614265330123"), timestamp(1'614'265'330'123ms));
  EXPECT_EQ(provider_time("1970-01-01T00:00:01Z"), timestamp(1s));
  EXPECT_EQ(provider_time("1970-01-01T02:00:01+02:00"), timestamp(1s));
  for (const auto* bad : {"", "-1", "1.5", "yesterday", "1970-01-01", "123456789012", "12345678901234",
                          "1614265330x23", "161426533012x"})
    EXPECT_EQ(provider_time(bad), std::nullopt) << bad;
}

TEST(webhook_reading, says_which_time_it_could_not_read) {
  const auto of = stripe_source();
  const auto read = read_event(of, {.body = R"({"id":"evt_1","created":"yesterday"})"});
  ASSERT_TRUE(read.what);
  EXPECT_EQ(read.what->time, std::nullopt);
  EXPECT_EQ(read.unread_time, "yesterday");
  EXPECT_EQ(read_event(of, {.body = R"({"id":"evt_1","created":1.5})"}).unread_time, "1.5E0");
  EXPECT_EQ(read_event(of, {.body = R"({"id":"evt_1","created":{"at":12}})"}).unread_time, R"({"at":12})");
  EXPECT_EQ(read_event(of, {.body = R"({"id":"evt_1"})"}).unread_time, "") << "it has none";
  EXPECT_EQ(read_event(of, {.body = R"({"id":"evt_1","created":null})"}).unread_time, "");
  EXPECT_EQ(read_event(of, {.body = R"({"id":"evt_1","created":12})"}).unread_time, "");
}

// Proves I8: whoever looks at the other one sees another event
TEST(webhook_reading, a_body_with_a_member_twice_is_refused) {
  const auto of = stripe_source();
  EXPECT_TRUE(read_event(of, {.body = R"({"id":"evt_1","note":"a:b \" : c"})"}).what);
  for (const auto* body :
       {R"({"id":"evt_1","id":"evt_2"})", R"({"id":"evt_1","data":{"object":{"id":"a","id":"b"}}})",
        R"({"id":"evt_1","\u0069d":"evt_2"})"}) {
    const auto read = read_event(of, {.body = body});
    EXPECT_FALSE(read.what) << body;
    EXPECT_NE(read.error.find("twice"), std::string::npos) << read.error;
  }
}

// Proves I8: the signature is taken over the id without blanks around it
TEST(webhook_reading, blanks_around_an_id_in_a_header_make_no_other_event) {
  const auto of = webhook::standard("crm", {"whsec_TQ=="});
  for (const auto* id : {"msg_1", "msg_1 ", " msg_1", "\tmsg_1\t "})
    EXPECT_EQ(read_event(of, {.headers = {{"webhook-id", id}}, .body = "{}"}).what->id, "msg_1") << id;
}

TEST(webhook_applying, an_event_is_stale_only_beside_a_later_one) {
  EXPECT_TRUE(is_stale(timestamp(1s), timestamp(2s)));
  EXPECT_FALSE(is_stale(timestamp(2s), timestamp(2s)));
  EXPECT_FALSE(is_stale(timestamp(3s), timestamp(2s)));
  EXPECT_FALSE(is_stale(std::nullopt, timestamp(2s)));
  EXPECT_FALSE(is_stale(timestamp(1s), std::nullopt));
}

TEST(webhook_applying, what_follows_from_a_failure_depends_on_its_class) {
  const webhook::worker_options options{.retry_wait = 1s, .attempts_max = 3, .transient_max_age = 1h};
  const auto judged = [&](failure_class why, std::int64_t attempts, duration age, std::int64_t passing = 0) {
    taken one;
    one.what.attempts = attempts - 1;  // before this failure
    one.passing = passing;
    return retry::judge(policy_of(options), why, failures_of(one).after(why), age);
  };
  EXPECT_FALSE(judged(failure_class::outage, 99, 59min).give_up.has_value());
  EXPECT_TRUE(judged(failure_class::outage, 1, 1h).give_up.has_value());
  EXPECT_TRUE(judged(failure_class::permanent, 1, 0s).give_up.has_value());
  EXPECT_FALSE(judged(failure_class::transient, 99, 59min).give_up.has_value());
  EXPECT_TRUE(judged(failure_class::transient, 1, 1h).give_up.has_value());
  EXPECT_FALSE(judged(failure_class::poison, 2, 99h).give_up.has_value());
  EXPECT_EQ(judged(failure_class::poison, 2, 0s).wait, 4s);
  EXPECT_TRUE(judged(failure_class::poison, 3, 0s).give_up.has_value());
  EXPECT_FALSE(judged(failure_class::poison, 10, 0s, 8).give_up.has_value())
      << "what has passed counts for nothing";
  EXPECT_TRUE(judged(failure_class::poison, 11, 0s, 8).give_up.has_value());
}

}  // namespace
}  // namespace settle::hooks
