// A service with tables of its own, on either database, and a clock that moves when told.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

using namespace std::chrono_literals;

struct own_tables : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (on_postgres()) {
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      server.emplace();
    }
    db = open();
    migrate(*db);
  }

  static bool on_postgres() { return GetParam() == dialect::postgres; }
  static std::string table(const std::string& name) { return (on_postgres() ? "settle." : "settle_") + name; }

  std::unique_ptr<database> open(fault_points* faults = nullptr, int connections = 16) {
    const environment env{.time = &time, .log = &log, .counters = &counters, .faults = faults};
    if (!on_postgres())
      return sqlite::open(dir.file("service.db"),
                          {.env = env, .busy_timeout = 60s, .connections_max = connections});
    return postgres::open(server->conninfo(),
                          {.env = env, .busy_timeout = 60s, .connections_max = connections});
  }

  void run(const std::string& sql) {
    auto tx = db->begin();
    tx.execute_script(sql);
    tx.commit();
  }

  // From now on updates of these rows change nothing, and nobody is told.
  void suppress_updates(const std::string& of, const std::string& which) {
    run(on_postgres()
            ? "create function suppress() returns trigger language plpgsql as $$ begin return null; end $$; "
              "create trigger suppress before update on " +
                  of + " for each row when (" + which + ") execute function suppress()"
            : "create trigger suppress before update on " + of + " when " + which +
                  " begin select raise(ignore); end");
  }

  // The rows of a query, cells as text, with spaces between them.
  std::vector<std::string> rows(const std::string& sql) {
    const auto found = db->read().execute(sql);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < found.size(); ++i) all.push_back(found[i][0].text());
    return all;
  }
  std::int64_t number(const std::string& sql) { return db->read().execute(sql)[0][0].integer(); }

  // Runs `work` in a transaction and commits it.
  template <class Work>
  auto in_transaction(Work&& work) {
    auto tx = db->begin();
    auto done = work(tx);
    tx.commit();
    return done;
  }

  // What has been published so far.
  std::vector<message> published() {
    recording_publisher destination;
    relay drainer(*db, destination);
    while (drainer.run_once()) {
    }
    drainer.leave();
    return destination.seen;
  }

  std::optional<scratch_database> server;
  temp_dir dir;
  testing::manual_time time;
  quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
};

}  // namespace settle::test
