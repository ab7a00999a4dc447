// A consumer whose handlers fail as a test tells them, on both databases.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/list_broker.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

using namespace std::chrono_literals;

struct failing_consumer : ::testing::TestWithParam<dialect> {
  using names = std::vector<std::string>;

  void SetUp() override {
    if (GetParam() == dialect::postgres) {
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    open();
    migrate(*db);
    auto tx = db->begin();
    tx.execute(GetParam() == dialect::postgres
                   ? "create table things_done (n bigint generated always as identity, what text not null)"
                   : "create table things_done (n integer primary key, what text not null)");
    tx.commit();
  }

  void open() {
    const environment env{.time = &time, .random = &random, .log = &log, .counters = &counters};
    db = GetParam() == dialect::postgres
             ? postgres::open(own->conninfo(), {.env = env})
             : sqlite::open(dir.file("service.db"), {.env = env, .busy_timeout = 500ms});
  }

  std::string table(const std::string& name) {
    return (GetParam() == dialect::postgres ? "settle." : "settle_") + name;
  }
  std::int64_t number(const std::string& sql) { return db->read().execute(sql)[0][0].integer(); }
  std::int64_t count(const std::string& name) { return number("select count(*) from " + table(name)); }

  void deliver(const std::string& id, const std::string& key) {
    message m;
    m.id = id;
    m.topic = "things";
    m.type = "thing.done";
    m.key = key;
    m.payload = "payload of " + id;
    m.extensions["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    broker.messages.push_back(m);
  }

  static consumer_options plain() { return {.name = "tester", .retry_jitter = 0, .version = "1.2.3"}; }

  // A consumer whose handlers fail for the ids that `failing` names, in the way it says, after they have
  // written something; and for those of `refusing` before.
  std::unique_ptr<consumer> make_consumer(const consumer_options& options = plain(),
                                          const handler_options& how = {}) {
    auto made = std::make_unique<consumer>(*db, broker, options);
    made->on(
        "things", "thing.done",
        [this](const message& m, transaction& tx) {
          calls.push_back(m.id);
          if (const auto found = refusing.find(m.id); found != refusing.end())
            throw handler_failed(found->second, m.id + " is refused");
          tx.execute("insert into things_done (what) values ($1)", {m.id});
          if (const auto found = failing.find(m.id); found != failing.end())
            throw handler_failed(found->second, m.id + " does not work");
        },
        how);
    return made;
  }

  static void drain(consumer& c) {
    while (c.run_once()) {
    }
  }
  void drain_for(consumer& c, duration total) {
    const auto step = std::max<duration>(total / 50, 50ms);
    for (duration passed{}; passed < total; passed += step) {
      drain(c);
      time.advance(step);
    }
    drain(c);
  }

  // What `settle dlq replay` sends for the first letter.
  message replay_message(int time_asked) {
    auto tx = db->begin();
    tx.execute("update " + table("dlq_events") + " set status = 'REPLAYING', replays = $1",
               {static_cast<std::int64_t>(time_asked)});
    tx.commit();
    auto m = dead_letters(*db)[0].what;
    m.extensions["settlereplayfor"] = "tester";
    m.extensions["settlereplayof"] = "1." + std::to_string(time_asked);
    return m;
  }

  names effects() {
    const auto rows = db->read().execute("select what from things_done order by n");
    names all;
    for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(rows[i][0].text());
    return all;
  }

  std::optional<scratch_database> own;
  temp_dir dir;
  testing::manual_time time;
  testing::seeded_random random{1};
  quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
  list_broker broker;
  std::map<std::string, failure_class> failing;
  std::map<std::string, failure_class> refusing;
  names calls;
};

}  // namespace settle::test
