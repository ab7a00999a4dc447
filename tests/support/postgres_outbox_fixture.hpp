// An outbox on PostgreSQL for one test, with a clock of its own and a destination that remembers.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"

namespace settle::test {

struct postgres_outbox : ::testing::Test {
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    env = {.time = &time, .log = &log, .counters = &counters};
    db = postgres::open(own->conninfo(), {.env = env});
    migrate(*db);
    // The migration went by the server's clock; from here on time is ours.
    auto tx = db->begin();
    tx.execute("update settle.outbox_leaves set opened_at = $1", {time.now()});
    tx.execute("update settle.outbox_ticks set at = $1", {time.now()});
    tx.commit();
  }

  static event make(const std::string& key, const std::string& payload) {
    return {.topic = "t", .type = "e", .key = key, .payload = payload};
  }

  event_id emit(const std::string& key, const std::string& payload) {
    auto tx = db->begin();
    const auto id = publish(tx, make(key, payload));
    tx.commit();
    return id;
  }

  static void run(relay& r) {
    while (r.run_once()) {
    }
  }

  std::vector<std::string> payloads() const {
    std::vector<std::string> all;
    for (const auto& m : destination.seen) all.push_back(m.payload);
    return all;
  }

  std::int64_t count(const std::string& what) {
    return db->read().execute("select count(*) from " + what)[0][0].integer();
  }

  std::optional<scratch_database> own;
  testing::manual_time time;
  quiet_log log;
  metrics counters;
  environment env;
  std::unique_ptr<database> db;
  recording_publisher destination;
};

}  // namespace settle::test
