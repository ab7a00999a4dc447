// The consumer's own server goes away under load, and comes back.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/postgres.hpp"
#include "support/list_broker.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

constexpr int messages = 3'000;
constexpr int keys = 50;

std::int64_t number(database& db, const std::string& sql) { return db.read().execute(sql)[0][0].integer(); }

// Proves C3, C8
TEST(postgres_outage, of_the_consumers_own_database_charges_nobody_and_keeps_the_order) {
  if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const test::private_server server;
  test::quiet_log log;
  auto db = postgres::open(server.conninfo(), {.env = {.log = &log}});
  migrate(*db);
  {
    auto tx = db->begin();
    tx.execute(
        "create table arrived (n bigint generated always as identity, id bigint not null, key text not "
        "null)");
    tx.commit();
  }
  test::list_broker broker;
  for (int i = 0; i < messages; ++i) {
    auto& m = broker.messages.emplace_back();
    m.id = std::to_string(i);
    m.key = std::to_string(i % keys);
    m.topic = "things";
    m.type = "thing.done";
  }
  broker.partition = "things/0";
  consumer c(*db, broker, {.name = "tester"});
  std::atomic<bool> crashed = false;
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    if (m.id == std::to_string(messages / 2))  // so that it is under way for sure
      while (!crashed) std::this_thread::sleep_for(1ms);
    tx.execute("insert into arrived (id, key) values ($1, $2)",
               {static_cast<std::int64_t>(std::stoll(m.id)), m.key});
  });
  {
    background loop(c);
    while (c.counts().applied < messages / 20) std::this_thread::sleep_for(5ms);
    server.command("crash postgres");
    crashed = true;
    std::this_thread::sleep_for(8s);
    server.command("start postgres");
    for (int i = 0; i < 12'000 && c.counts().applied + c.counts().duplicates < messages; ++i)
      std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(number(*db, "select count(*) from arrived"), messages);
  EXPECT_EQ(number(*db, "select count(distinct id) from arrived"), messages);
  EXPECT_EQ(
      number(*db,
             "select count(*) from (select id < lag(id) over (partition by key order by n) as back from "
             "arrived) a where back"),
      0)
      << "out of order";
  EXPECT_EQ(c.counts().failures, 0);
  EXPECT_TRUE(dead_letters(*db).empty());
  EXPECT_EQ(number(*db, "select count(*) from settle.parked_messages"), 0);
}

}  // namespace
}  // namespace settle
