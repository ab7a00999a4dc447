// Idempotency keys over HTTP, without a socket; daemon_test asks the daemon.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <optional>
#include <vector>

#include "daemon/api/keys.hpp"
#include "settle/claims.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

namespace json = boost::json;

struct keys_api : ::testing::Test {
  void SetUp() override {
    db = sqlite::open(dir.file("service.db"), {.env = env});
    migrate(*db);
    keys = open_claims(*db);
    daemon::add_key_routes(routes, [this]() -> claims& { return *keys; });
  }

  http::response post(const std::string& operation, const std::string& body) {
    return routes.handle({.method = "POST", .target = "/v1/keys/" + operation, .body = body}, env);
  }
  json::object ask(const std::string& operation, const json::object& with, int status = 200) {
    const auto got = post(operation, json::serialize(with));
    EXPECT_EQ(got.status, status) << got.body;
    return json::parse(got.body).as_object();
  }
  static json::object with(json::object more = {}) {
    json::object made{{"service", "shop"}, {"caller", "ann"}, {"key", "k-1"}};
    for (const auto& one : more) made[one.key()] = one.value();
    return made;
  }
  std::string token() { return std::string(ask("claim", with()).at("token").as_string()); }

  test::temp_dir dir;
  test::quiet_log log;
  testing::manual_time time;
  environment env{.time = &time, .log = &log};
  std::unique_ptr<database> db;
  std::unique_ptr<claims> keys;
  http::router routes;
};

// Proves I1, I4
TEST_F(keys_api, claims_completes_and_answers_from_the_record) {
  const auto mine = ask("claim", with({{"fingerprint", "POST /orders"}}));
  EXPECT_EQ(mine.at("outcome"), "claimed");
  EXPECT_EQ(mine.at("lease_ms"), 30'000);
  const auto busy = post("claim", json::serialize(with()));
  EXPECT_EQ(busy.status, 409);
  EXPECT_EQ(busy.headers.find("Retry-After"), "1");
  EXPECT_EQ(busy.headers.find("Content-Type"), "application/problem+json");
  EXPECT_EQ(ask("claim", with({{"fingerprint", "other"}}), 422).at("code"), "idempotency_key_reused");
  // Parsed: whether an array of one array in braces is nested or copied, compilers do not agree.
  const auto answer = json::parse(R"({"status": 201, "headers": [["Location", "/orders/7"]], "body": "{}"})");
  const auto completion = with({{"token", mine.at("token")}, {"answer", answer}});
  EXPECT_EQ(ask("complete", completion).at("outcome"), "completed");
  EXPECT_EQ(ask("complete", completion).at("outcome"), "completed") << "repeated";
  const auto again = ask("claim", with());
  EXPECT_EQ(again.at("outcome"), "completed");
  EXPECT_EQ(again.at("answer"), answer);
}

// Proves I4: others have been given the first one
TEST_F(keys_api, a_second_completion_with_another_answer_is_told_the_recorded_one) {
  const auto mine = token();
  const auto completion = [&](int status, const std::string& body) {
    return with({{"token", mine}, {"answer", json::object{{"status", status}, {"body", body}}}});
  };
  ask("complete", completion(201, "paid"));
  EXPECT_EQ(ask("complete", completion(201, "paid")).at("outcome"), "completed") << "the same one, repeated";
  for (const auto& other : {completion(201, "not paid"), completion(500, "paid")}) {
    const auto told = ask("complete", other, 409);
    EXPECT_EQ(told.at("code"), "claim_completed_otherwise");
    EXPECT_EQ(told.at("answer").at("status"), 201);
    EXPECT_EQ(told.at("answer").at("body"), "paid");
  }
  EXPECT_EQ(ask("claim", with()).at("answer").at("body"), "paid");
}

// Proves I1: the router decodes paths, so an escape that need not be there is the same operation.
TEST_F(keys_api, serves_a_path_with_escapes_like_the_plain_one) {
  const auto claim = with({{"key", "k-2"}});
  EXPECT_EQ(ask("cl%61im", with()).at("outcome"), "claimed");
  auto mine = with({{"token", ask("clai%6D", claim).at("token")}, {"key", "k-2"}});
  EXPECT_EQ(ask("rene%77", mine).at("outcome"), "renewed");
  EXPECT_EQ(ask("%72elease", mine).at("outcome"), "released");
  mine["token"] = ask("claim", claim).at("token");
  mine["answer"] = json::object{{"status", 201}};
  EXPECT_EQ(ask("c%6fmplete", mine).at("outcome"), "completed");
  EXPECT_EQ(ask("%63laim", claim).at("outcome"), "completed");
  EXPECT_EQ(post("cl%61im", "{}").status, 400);
  EXPECT_EQ(post("cl%2561im", "{}").status, 404) << "decoded once, not twice";
}

// Proves I4
TEST_F(keys_api, carries_answers_that_are_no_text) {
  const auto mine = token();
  ask("complete",
      with({{"token", mine}, {"answer", json::object{{"status", 200}, {"body_base64", "/wAB"}}}}));
  EXPECT_EQ(ask("claim", with()).at("answer").at("body_base64"), "/wAB");
}

// Proves I7
TEST_F(keys_api, renews_releases_and_says_what_nobody_knows) {
  const auto mine = token();
  time.advance(std::chrono::seconds(20));
  EXPECT_EQ(ask("renew", with({{"token", mine}, {"lease_ms", 30'000}})).at("outcome"), "renewed");
  time.advance(std::chrono::seconds(31));
  EXPECT_EQ(ask("claim", with(), 409).at("code"), "idempotency_outcome_unknown");
  const auto asking = ask("claim", with({{"on_unknown", "ask"}}));
  EXPECT_EQ(asking.at("outcome"), "ask");
  EXPECT_EQ(ask("release", with({{"token", mine}}), 409).at("code"), "claim_lost");
  EXPECT_EQ(ask("release", with({{"token", asking.at("token")}})).at("outcome"), "released");
  EXPECT_EQ(ask("claim", with()).at("outcome"), "claimed");
}

// Proves I4
TEST_F(keys_api, lets_a_caller_name_its_claim_and_repeat_it) {
  const auto named = with({{"token", "018f4e4e-0000-7000-8000-000000000001"}});
  EXPECT_EQ(ask("claim", named).at("outcome"), "claimed");
  EXPECT_EQ(ask("claim", named).at("outcome"), "claimed");
  time.advance(std::chrono::seconds(31));
  const auto asking = with({{"token", "018f4e4e-0000-7000-8000-000000000002"}, {"on_unknown", "ask"}});
  EXPECT_EQ(ask("claim", asking).at("outcome"), "ask");
  EXPECT_EQ(ask("claim", asking).at("outcome"), "ask")
      << "the first one may have acted, however often we ask";
}

TEST_F(keys_api, refuses_a_huge_member_in_few_words) {
  const auto huge = "lease\n" + std::string(1'000'000, 'x');
  const json::object answer{{huge, 200}};
  for (const auto& [operation, body, path] :
       {std::tuple("claim", with({{huge, 7}}), ""),
        std::tuple("complete", with({{"token", token()}, {"answer", answer}}), "answer.")}) {
    const auto detail = std::string(ask(operation, body, 400).at("detail").as_string());
    EXPECT_EQ(detail, path + ("lease " + std::string(58, 'x')) + "… is not known here");
  }
}

// Proves I7
TEST_F(keys_api, keeps_what_a_claim_is_about_for_operators) {
  const json::object about{{"caller", "ann"}, {"key", "k-…"}, {"method", "POST"}, {"target", "/payments"}};
  ask("claim", with({{"about", about}, {"lease_ms", 1}}));
  time.advance(std::chrono::seconds(1));
  const auto found = unknown_claims(*db);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].caller, "ann");
  EXPECT_EQ(found[0].key, "k-…");
  EXPECT_EQ(found[0].method, "POST");
  EXPECT_EQ(found[0].target, "/payments");
  const json::object misspelt{{"methd", "POST"}};
  EXPECT_EQ(ask("claim", with({{"about", misspelt}}), 400).at("detail"),
            "about.methd is not known here; did you mean about.method?");
  const json::object endless{{"label", std::string(2000, 'x')}};
  EXPECT_EQ(ask("claim", with({{"about", endless}}), 413).at("code"), "payload_too_large");
}

TEST_F(keys_api, says_what_is_wrong_with_a_request) {
  const auto refused = [&](const json::object& body, const std::string& operation = "claim") {
    return std::string(ask(operation, body, 400).at("detail").as_string());
  };
  EXPECT_EQ(refused({}), "service is missing");
  EXPECT_EQ(refused(with({{"key", 7}})), "key is a text");
  EXPECT_EQ(refused(with({{"lease", 7}})), "lease is not known here; did you mean lease_ms?");
  EXPECT_EQ(refused(with({{"lease_ms", -7}})), "lease_ms is a number of milliseconds");
  EXPECT_EQ(refused(with({{"on_unknown", "hope"}})), "on_unknown is hold, ask or reissue");
  EXPECT_EQ(refused(with({{"token", "x"}})), "token is the token of a claim, a UUID");
  EXPECT_EQ(refused(with(), "complete"), "token is missing");
  EXPECT_NE(refused(with({{"key", std::string(300, 'k')}})).find("1 to 255 bytes"), std::string::npos);
  EXPECT_NE(refused(with({{"lease_ms", 0}})).find("1 ms to 24 h"), std::string::npos);
  const json::object answer{{"staus", 200}};
  EXPECT_EQ(refused(with({{"token", token()}, {"answer", answer}}), "complete"),
            "answer.staus is not known here; did you mean answer.status?");
  for (const std::int64_t status : {std::int64_t{0}, std::int64_t{600}, (std::int64_t{1} << 32) + 200})
    EXPECT_EQ(refused(with({{"token", "018f4e4e-0000-7000-8000-000000000001"},
                            {"answer", json::object{{"status", status}}}}),
                      "complete"),
              "answer.status is a status of HTTP");
  EXPECT_EQ(post("claim", "{").status, 400);
  EXPECT_EQ(post("claim", "[]").status, 400);
}

// Proves I3: a service that forgot it would have one key for all of its users.
TEST_F(keys_api, wants_to_be_told_whose_key_it_is) {
  auto nobodys = with({{"token", token()}, {"answer", json::object{}}});
  nobodys.erase("caller");
  for (const auto* operation : {"claim", "complete", "renew", "release"}) {
    auto asked = nobodys;
    if (operation != std::string_view("complete")) asked.erase("answer");
    EXPECT_EQ(ask(operation, asked, 400).at("detail"), "caller is missing") << operation;
  }
  EXPECT_EQ(ask("claim", with({{"caller", ""}})).at("outcome"), "claimed") << "where there is only one";
}

// Proves I4
TEST_F(keys_api, a_record_that_is_damaged_fails_alone) {
  ask("complete", with({{"token", token()}, {"answer", json::object{{"body", "x"}}}}));
  auto tx = db->begin();
  tx.execute("update settle_idempotency_claims set body = x'00'");
  tx.commit();
  EXPECT_EQ(ask("claim", with(), 500).at("code"), "store_corrupt");
  EXPECT_EQ(ask("claim", with({{"key", "k-2"}})).at("outcome"), "claimed");
  EXPECT_EQ(log.count("key_failed"), 1u);
}

// Grants what it is asked for, and fails the first time all the same: another record of the batch is damaged.
struct torn_store final : claims {
  std::vector<claim_answer> run(std::span<const claim_call> calls) override {
    runs.push_back(std::get<claim_request>(calls[0]).run);
    if (runs.size() == 1 && first) return {*first};
    if (runs.size() == 1) throw error(errc::store_corrupt, "not this one");
    return {claim_result{claim_outcome::claimed, {runs.back().value_or(uuid{}), 1}, {}, {}}};
  }
  claim_answer run_with_others(claim_call call) override { return run({&call, 1})[0]; }
  const environment& env() const override { return around; }

  environment around;
  std::optional<claim_answer> first = std::nullopt;  // instead of failing for all
  std::vector<std::optional<uuid>> runs;
};

http::response claim_from(torn_store& store, const json::object& asked, const environment& env) {
  store.around = env;
  http::router torn;
  daemon::add_key_routes(torn, [&]() -> claims& { return store; });
  return torn.handle({.method = "POST", .target = "/v1/keys/claim", .body = json::serialize(asked)}, env);
}

// Proves I4: else what was granted with a damaged one would be nobody's.
TEST_F(keys_api, a_claim_that_came_with_a_damaged_one_is_repeated_under_the_same_token) {
  torn_store store;
  const auto got = claim_from(store, with(), env);
  EXPECT_EQ(got.status, 200) << got.body;
  ASSERT_EQ(store.runs.size(), 2u);
  EXPECT_TRUE(store.runs[0]);
  EXPECT_EQ(store.runs[0], store.runs[1]);
}

// Proves I4
TEST_F(keys_api, a_call_that_the_store_could_not_look_into_comes_again) {
  torn_store store;
  store.first = claim_failed{error(errc::store_unavailable, "away")};
  const auto got = claim_from(store, with(), env);
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.headers.find("Retry-After"), "1");
  EXPECT_EQ(log.count("key_failed"), 1u);
  torn_store damaged;
  damaged.first = claim_failed{error(errc::store_corrupt, "this one")};
  EXPECT_EQ(claim_from(damaged, with(), env).status, 500);
  EXPECT_EQ(damaged.runs.size(), 1u) << "the store has tried it alone";
}

// Proves I4
TEST_F(keys_api, a_store_that_is_away_lets_nobody_run) {
  http::router away;
  daemon::add_key_routes(away, []() -> claims& { throw error(errc::store_unavailable, "not yet"); });
  const auto got =
      away.handle({.method = "POST", .target = "/v1/keys/claim", .body = json::serialize(with())}, env);
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.headers.find("Retry-After"), "1");
}

}  // namespace
}  // namespace settle
