// An outbox, a relay's destination that rejects when told, and a clock that moves when told; on both
// databases.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "settle/driver/broker.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

struct held_events_world : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (on_postgres()) {
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    db = open(nullptr);
  }

  static bool on_postgres() { return GetParam() == dialect::postgres; }
  static std::string table(const std::string& name) { return (on_postgres() ? "settle." : "settle_") + name; }

  std::unique_ptr<database> open(fault_points* faults) {
    const environment env{.time = &time, .log = &log, .counters = &counters, .faults = faults};
    auto opened = on_postgres() ? postgres::open(own->conninfo(), {.env = env})
                                : sqlite::open(dir.file("service.db"), {.env = env});
    migrate(*opened);
    return opened;
  }

  event_id emit(const std::string& key, const std::string& payload, const publish_options& options = {}) {
    auto tx = db->begin();
    const auto id = publish(tx, event{.topic = "t", .type = "e", .key = key, .payload = payload}, options);
    tx.commit();
    return id;
  }

  static void run(relay& r) {
    while (r.run_once()) {
    }
  }

  // Long enough for every attempt.
  void run_for(relay& r, duration how_long, duration step = std::chrono::milliseconds(100)) {
    for (duration passed{}; passed < how_long; passed += step) {
      run(r);
      time.advance(step);
    }
    run(r);
  }

  void reject(const std::string& payload) {
    destination.refuse = [payload](const message& m) {
      return publish_result{
          m.payload == payload ? publish_status::message_rejected : publish_status::confirmed, "too strange"};
    };
  }

  std::string status_of(const event_id& id) {
    return db->read()
        .execute("select status from " + table("outbox_events") + " where event_id = $1", {id})[0][0]
        .text();
  }

  std::int64_t held() {
    return db->read().execute("select count(*) from " + table("outbox_held"))[0][0].integer();
  }

  std::optional<scratch_database> own;
  temp_dir dir;
  testing::manual_time time;
  quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
  recording_publisher destination;
};

}  // namespace settle::test
