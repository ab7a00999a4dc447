// The fuzz entry over its corpus and a fixed number of seeded mutations of it, and a route with a real
// database behind it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fuzz/entries.hpp"
#include "fuzz/mutation.hpp"
#include "settle/http_once.hpp"
#include "settle/request_key.hpp"
#include "settle/sqlite.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

const std::vector<std::string> pieces{"\"",   "\\",
                                      "\\\"", "\\\\",
                                      ",",    " ",
                                      "\t",   ";",
                                      "=",    ":",
                                      "\r\n", "\x7f",
                                      "\xff", std::string(1, '\0'),
                                      "\"\"", std::string(250, 'k')};

// Proves I1, I3
TEST(idempotency_key_fuzz, any_header_is_one_key_or_refused_with_a_document) {
  const auto seeds = fuzz::corpus(SETTLE_KEY_CORPUS);
  ASSERT_GE(seeds.size(), 20u);
  for (const auto& seed : seeds)
    for (std::size_t end = 0; end <= seed.size(); ++end) fuzz::idempotency_key(seed.substr(0, end));
  testing::seeded_random random(9);
  for (int i = 0; i < 50'000; ++i)
    fuzz::idempotency_key(fuzz::mutated(seeds[random.below(seeds.size())], seeds, pieces, random));
}

// Proves I1, I3, I6
TEST(idempotency_key_fuzz, of_any_headers_as_many_orders_are_made_as_there_are_keys) {
  test::temp_dir dir;
  test::quiet_log log;
  const environment env{.log = &log};
  const auto db = sqlite::open(dir.file("shop.db"), {.env = env});
  migrate(*db);
  auto tx = db->begin();
  tx.execute("create table orders (id integer primary key)");
  tx.commit();
  http::router routes;
  routes.post(
      "/orders",
      http::idempotent(
          *db, {.service = "shop", .caller = [](const auto&) { return std::optional<std::string>("ann"); }},
          [](const http::request&, transaction& in) -> http::kept_response {
            in.execute("insert into orders default values");
            return http::text(201, "text/plain", "made");
          }));
  const auto seeds = fuzz::corpus(SETTLE_KEY_CORPUS);
  testing::seeded_random random(10);
  std::set<request_key> keys;
  for (int i = 0; i < 400; ++i) {
    const auto value = fuzz::mutated(seeds[random.below(seeds.size())], seeds, pieces, random);
    http::request asked{.method = "POST", .target = "/orders", .body = "one"};
    asked.headers.add("Idempotency-Key", value);
    const auto answer = routes.handle(asked, env);
    const auto read = parse_request_key(value);
    ASSERT_EQ(answer.status, read.key ? 201 : 400) << ::testing::PrintToString(value);
    if (!read.key) continue;
    const bool is_new = keys.insert(*read.key).second;
    ASSERT_EQ(answer.headers.find("Idempotent-Replayed"), is_new ? "false" : "true");
    asked.body = "another";
    ASSERT_EQ(routes.handle(asked, env).status, 422) << ::testing::PrintToString(value);
  }
  EXPECT_GT(keys.size(), 50u);
  EXPECT_EQ(db->read().execute("select count(*) from orders")[0][0].integer(),
            static_cast<std::int64_t>(keys.size()));
}

}  // namespace
}  // namespace settle
