// Routes that take an Idempotency-Key, on both databases, over real connections and without.
#include "settle/http_once.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <latch>
#include <optional>
#include <thread>

#include "settle/error.hpp"
#include "settle/http_server.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/raw_http.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

struct http_once : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (on_postgres()) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    db = open();
    migrate(*db);
    auto tx = db->begin();
    const std::string id = on_postgres() ? "bigserial" : "integer primary key";
    tx.execute("create table orders (id " + id + ", what text not null)");
    tx.execute("create table things (id bigint primary key)");
    tx.execute("create table notes (about bigint references things (id) deferrable initially deferred)");
    tx.commit();
  }

  static bool on_postgres() { return GetParam() == dialect::postgres; }

  std::unique_ptr<database> open() {
    if (on_postgres()) return postgres::open(own->conninfo(), {.env = env});
    return sqlite::open(dir.file("shop.db"), {.env = env});
  }

  http::idempotency policy() const {
    return {.service = "shop", .caller = [](const http::request& asked) -> std::optional<std::string> {
              const auto found = asked.headers.find("Authorization");
              if (!found) return std::nullopt;
              return std::string(*found);
            }};
  }

  http::router routes(http::idempotency with) {
    http::router made;
    made.post("/orders",
              http::idempotent(*db, std::move(with), [this](const http::request& asked, transaction& tx) {
                return place(asked, tx);
              }));
    return made;
  }

  static constexpr std::string_view insert_null = "insert into orders (what) values (null)";

  http::kept_response place(const http::request& asked, transaction& tx) {
    if (asked.body == "invalid")
      return {http::problem(400, "invalid_order", "no such article"), keeps::nothing};
    const auto id =
        tx.execute("insert into orders (what) values ($1) returning id", {asked.body})[0][0].integer();
    if (asked.body == "sold out") return http::problem(409, "sold_out", "there is none left");
    if (asked.body == "broken") return http::problem(500, "broken", "try again");
    if (asked.body == "throws") throw std::runtime_error("no idea");
    if (asked.body == "outage") throw error(errc::destination_unavailable, "the stock is away");
    if (asked.body == "null") tx.execute(insert_null);
    if (asked.body == "null, posted") tx.post(query{"null", insert_null, insert_null});
    if (asked.body == "orphan") tx.execute("insert into notes (about) values (7)");
    if (asked.body == "argument") throw error(errc::invalid_argument, "not like this");
    if (asked.body == "lost") throw error(errc::transaction_lost, "and nobody knows why");
    if (asked.body == "schema") throw error(errc::schema_missing, "not yet");
    if (inside) inside(tx);
    auto made = http::text(201, "application/json", "{\"id\":" + std::to_string(id) + "}");
    made.headers.set("Location", "/orders/" + std::to_string(id));
    made.headers.set("Set-Cookie", "session=1");
    return made;
  }

  static http::request order(const std::string& body, const std::string& key,
                             const std::string& user = "ann") {
    http::request asked{.method = "POST", .target = "/orders", .body = body};
    if (!key.empty()) asked.headers.add("Idempotency-Key", key);
    if (!user.empty()) asked.headers.add("Authorization", user);
    return asked;
  }

  http::response ask(const http::request& what) { return ask(what, policy()); }
  http::response ask(const http::request& what, const http::idempotency& with) {
    return routes(with).handle(what, env);
  }

  std::int64_t orders() { return db->read().execute("select count(*) from orders")[0][0].integer(); }

  std::optional<test::scratch_database> own;
  test::temp_dir dir;
  test::quiet_log log;
  environment env{.log = &log};
  std::unique_ptr<database> db;
  std::function<void(transaction&)> inside;
};

// Proves I1, I6
TEST_P(http_once, a_request_that_comes_again_is_answered_from_its_record) {
  const auto first = ask(order("book", "\"k-1\""));
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.headers.find("Idempotent-Replayed"), "false");
  EXPECT_EQ(first.headers.find("Set-Cookie"), "session=1");
  const auto again = ask(order("book", "k-1"));
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.headers.find("Location"), first.headers.find("Location"));
  EXPECT_EQ(again.headers.find("Content-Type"), "application/json");
  EXPECT_EQ(again.headers.find("Idempotent-Replayed"), "true");
  EXPECT_FALSE(again.headers.contains("Set-Cookie"));
  const auto other = ask(order("other book", "k-1"));
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(boost::json::parse(other.body).at("instance").as_string(), "/orders");
  EXPECT_EQ(orders(), 1);
}

// Proves I8: the id of what is asked for is the key
TEST_P(http_once, a_request_without_the_header_is_told_by_a_member_of_its_body) {
  auto refunds = policy();
  refunds.key_field = "refund_request_id";
  const std::string body = R"({"refund_request_id":"rr_1","cents":100})";
  EXPECT_EQ(ask(order(body, ""), refunds).headers.find("Idempotent-Replayed"), "false");
  EXPECT_EQ(ask(order(body, ""), refunds).headers.find("Idempotent-Replayed"), "true");
  EXPECT_EQ(ask(order(body, "", "bob"), refunds).headers.find("Idempotent-Replayed"), "false");
  EXPECT_EQ(ask(order(R"({"refund_request_id":"rr_1","cents":200})", ""), refunds).status, 422);
  EXPECT_EQ(ask(order(R"({"cents":100})", ""), refunds).status, 400);
  EXPECT_EQ(orders(), 2);
  for (const auto& bad : {std::string(101, 'x'), std::string("refund:id")}) {
    refunds.key_field = bad;
    EXPECT_EQ(test::code_of([&] { ask(order(body, ""), refunds); }), errc::invalid_argument) << bad;
  }
}

// Proves I3
TEST_P(http_once, one_callers_key_never_answers_another) {
  const auto ann = ask(order("book", "k-1", "ann"));
  const auto bob = ask(order("book", "k-1", "bob"));
  EXPECT_EQ(bob.headers.find("Idempotent-Replayed"), "false");
  EXPECT_NE(bob.body, ann.body);
  EXPECT_EQ(ask(order("book", "k-1", "")).status, 401);
  EXPECT_EQ(orders(), 2);
}

// Proves I1
TEST_P(http_once, a_key_that_is_missing_or_none_is_refused_before_anything_runs) {
  for (const auto& key : {"", "\"open", "a,b"}) {
    const auto refused = ask(order("book", key));
    EXPECT_EQ(refused.status, 400) << key;
    EXPECT_EQ(refused.headers.find("Content-Type"), "application/problem+json");
  }
  EXPECT_EQ(orders(), 0);
  auto lax = policy();
  lax.required = false;
  EXPECT_EQ(ask(order("book", ""), lax).status, 201);
  EXPECT_EQ(ask(order("book", ""), lax).status, 201);
  EXPECT_EQ(orders(), 2);
}

// Proves I1, I6
TEST_P(http_once, while_the_first_is_at_work_others_are_told_to_come_again) {
  std::latch begun(1), answered(1);
  inside = [&](transaction&) {
    begun.count_down();
    answered.wait();
  };
  std::jthread first([&] { EXPECT_EQ(ask(order("book", "k-1")).status, 201); });
  begun.wait();
  const auto second = ask(order("book", "k-1"));
  EXPECT_EQ(second.status, 409);
  EXPECT_EQ(second.headers.find("Retry-After"), "1");
  EXPECT_FALSE(second.headers.contains("Idempotent-Replayed")) << "clients take that for the final answer";
  EXPECT_EQ(ask(order("other", "k-1")).status, 422) << "it wins over 409";
  answered.count_down();
  first.join();
  EXPECT_EQ(orders(), 1);
}

TEST_P(http_once, its_refusals_are_called_as_the_service_calls_them) {
  auto with = policy();
  with.codes = {.in_flight = "order_pending", .reused = "key_conflict", .missing = "key_missing"};
  EXPECT_NE(ask(order("book", ""), with).body.find("key_missing"), std::string::npos);
  inside = [&](transaction&) {
    EXPECT_NE(ask(order("book", "k-1"), with).body.find("order_pending"), std::string::npos);
  };
  EXPECT_EQ(ask(order("book", "k-1"), with).status, 201);
  EXPECT_NE(ask(order("other", "k-1"), with).body.find("key_conflict"), std::string::npos);
}

// Proves I1
TEST_P(http_once, the_status_says_what_is_recorded) {
  EXPECT_EQ(ask(order("sold out", "k-1")).status, 409);
  EXPECT_EQ(ask(order("sold out", "k-1")).headers.find("Idempotent-Replayed"), "true");
  EXPECT_EQ(ask(order("broken", "k-2")).headers.find("Idempotent-Replayed"), "false");
  EXPECT_EQ(ask(order("broken", "k-2")).headers.find("Idempotent-Replayed"), "false");
  EXPECT_EQ(ask(order("invalid", "k-3")).status, 400);
  EXPECT_EQ(ask(order("book", "k-3")).status, 201) << "nothing was kept of the invalid one";
  EXPECT_EQ(orders(), 1) << "what was refused has left nothing";
}

// As Stripe: what the first execution gave is its result, whatever it was. Proves I1
TEST_P(http_once, the_profile_of_stripe_keeps_server_errors_too) {
  auto stripe = policy();
  stripe.profile = http::idempotency_profile::stripe;
  const auto twice = [&](const std::string& body, const http::idempotency& with) {
    const auto first = ask(order(body, "\"" + body + "\""), with);
    const auto again = ask(order(body, "\"" + body + "\""), with);
    EXPECT_EQ(again.status, first.status);
    const bool replayed = again.headers.find("Idempotent-Replayed") == "true";
    if (replayed) {
      EXPECT_EQ(again.body, first.body);
      EXPECT_EQ(first.headers.find("Idempotent-Replayed"), "false") << body;
    }
    return std::pair(first.status, replayed);
  };
  EXPECT_EQ(twice("broken", stripe), std::pair(500, true));
  EXPECT_EQ(twice("throws", stripe), std::pair(500, true)) << "also one that the handler has thrown";
  EXPECT_EQ(twice("sold out", stripe), std::pair(409, true));
  EXPECT_EQ(twice("outage", stripe), std::pair(503, false)) << "nothing was decided";
  EXPECT_EQ(twice("invalid", stripe), std::pair(400, false)) << "validation has failed before the execution";
  EXPECT_EQ(orders(), 0) << "what failed has left nothing";
  EXPECT_EQ(log.count("http_failure_recorded path=/orders error=no idea"), 1u) << "a replay fails nowhere";
  EXPECT_EQ(log.count("http_handler_failed"), 2u) << "the outages";
  auto lenient = stripe;
  lenient.service = "lenient";
  lenient.record.server_error = keeps::nothing;
  for (const auto* body : {"broken", "throws"})
    EXPECT_EQ(twice(body, lenient), std::pair(500, false)) << "what the route says wins";
  auto strict = policy();
  strict.service = "strict";
  strict.record.server_error = keeps::answer;
  for (const auto* body : {"broken", "throws"}) EXPECT_EQ(twice(body, strict), std::pair(500, true)) << body;
}

// Proves I1
TEST_P(http_once, the_profile_of_stripe_keeps_what_the_handlers_own_statements_failed_with) {
  auto stripe = policy();
  stripe.profile = http::idempotency_profile::stripe;
  for (const auto* body : {"null", "null, posted", "orphan", "argument"}) {
    const auto first = ask(order(body, "\"" + std::string(body) + "\""), stripe);
    EXPECT_EQ(first.status, 500) << body;
    EXPECT_EQ(first.headers.find("Idempotent-Replayed"), "false") << body;
    const auto again = ask(order(body, "\"" + std::string(body) + "\""), stripe);
    EXPECT_EQ(again.status, 500) << body;
    EXPECT_EQ(again.headers.find("Idempotent-Replayed"), "true") << body;
    EXPECT_EQ(again.body, first.body) << body;
  }
  EXPECT_EQ(log.count("http_failure_recorded"), 4u);
  for (const auto* body : {"lost", "schema"}) {
    EXPECT_EQ(ask(order(body, body), stripe).status, 500);
    EXPECT_FALSE(ask(order(body, body), stripe).headers.contains("Idempotent-Replayed")) << body;
  }
  EXPECT_EQ(log.count("http_handler_failed"), 4u) << "each of them ran";
  EXPECT_EQ(orders(), 0);
}

// Proves I1
TEST_P(http_once, an_answer_may_be_as_large_as_the_route_says) {
  auto small = policy();
  small.answer_bytes_max = 8;
  EXPECT_EQ(ask(order("book", "k-1"), small).status, 500);
  EXPECT_EQ(orders(), 0) << "what cannot be recorded has not happened";
  small.answer_bytes_max = 1000;
  EXPECT_EQ(ask(order("book", "k-1"), small).status, 201);
}

// A header is made of what a client sent, say. Proves I1
TEST_P(http_once, an_answer_that_cannot_be_sent_has_not_happened) {
  const auto returning = [&](const http::response& made, const http::request& asked,
                             http::idempotency_profile profile) {
    auto with = policy();
    with.profile = profile;
    with.required = false;
    const auto what = http::idempotent(*db, with, [&](const http::request&, transaction& tx) {
      tx.execute("insert into orders (what) values ('book')");
      return made;
    });
    http::router routed;
    routed.post("/orders", what);
    return routed.handle(asked, env);
  };
  const auto good = http::text(201, "text/plain", "ordered");
  const std::vector<http::response> bad{{.status = 201, .headers = {{"Location", "/orders/a\nb"}}},
                                        {.status = 201, .headers = {{"X-Note", "not recorded\r\n"}}},
                                        {.status = 201, .headers = {{"X Note", "a"}}},
                                        {.status = 100},
                                        {.status = 600}};
  for (const auto profile : {http::idempotency_profile::ietf, http::idempotency_profile::stripe}) {
    for (const auto& made : bad) {
      for (int time = 1; time <= 2; ++time) {
        const auto got = returning(made, order("book", "k-1"), profile);
        EXPECT_EQ(got.status, 500);
        EXPECT_FALSE(got.headers.contains("Idempotent-Replayed"));
      }
      EXPECT_EQ(returning(made, order("book", ""), profile).status, 500) << "without a key";
    }
    EXPECT_EQ(orders(), 0);
  }
  EXPECT_EQ(returning(good, order("book", "k-1"), http::idempotency_profile::ietf).status, 201);
  EXPECT_EQ(orders(), 1);
}

// Proves I4
TEST_P(http_once, a_store_that_is_down_is_503_and_nothing_runs) {
  struct away final : fault_points {
    void reached(std::string_view point) override {
      if (point == "once.commit.before") throw error(errc::store_unavailable, "the disk is away");
    }
  } faults;
  env.faults = &faults;
  db = open();
  const auto refused = ask(order("book", "k-1"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.headers.contains("Retry-After"));
  EXPECT_FALSE(refused.headers.contains("Idempotent-Replayed"));
  env.faults = nullptr;
  db = open();
  EXPECT_EQ(orders(), 0);
  EXPECT_EQ(ask(order("book", "k-1")).status, 201);
}

TEST_P(http_once, a_policy_that_would_share_keys_or_cookies_is_refused) {
  auto nobody = policy();
  nobody.caller = nullptr;
  EXPECT_EQ(test::code_of([&] { routes(nobody); }), errc::invalid_argument);
  auto cookies = policy();
  cookies.headers = {"set-cookie"};
  EXPECT_EQ(test::code_of([&] { routes(cookies); }), errc::invalid_argument);
  auto unnamed = policy();
  unnamed.service = "";
  EXPECT_EQ(test::code_of([&] { routes(unnamed); }), errc::invalid_argument);
}

// Proves I1
TEST_P(http_once, fifty_connections_with_one_key_make_one_order) {
  http::server server(routes(policy()), {.worker_threads = 16, .env = env});
  std::latch start(1);
  std::vector<std::jthread> clients;
  std::atomic<int> fresh = 0;
  for (int i = 0; i < 50; ++i)
    clients.emplace_back([&] {
      test::raw_http line(server.port());
      start.wait();
      for (;;) {
        const auto got = line.ask(
            "POST /orders HTTP/1.1\r\nHost: t\r\nAuthorization: ann\r\nIdempotency-Key: "
            "\"click\"\r\nContent-Length: 4\r\n\r\nbook");
        if (got.status == 409) continue;
        EXPECT_EQ(got.status, 201);
        EXPECT_EQ(got.body, "{\"id\":1}");
        fresh += got.has("Idempotent-Replayed: false");
        return;
      }
    });
  start.count_down();
  clients.clear();
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(orders(), 1);
}

INSTANTIATE_TEST_SUITE_P(databases, http_once, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& one) {
                           return one.param == dialect::sqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace settle
