// A service with dead letters, on either database, and the consumer's part of a replay in the test's hand.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dead_letter/shared.hpp"
#include "settle/dead_letter.hpp"
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

struct dead_letter_world : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (on_postgres()) {
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    db = open(nullptr);
    start_relay();
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

  void start_relay() { drainer.emplace(*db, destination); }

  // As another process would.
  void reopen() {
    drainer->leave();
    drainer.reset();
    db = open(nullptr);
    start_relay();
  }

  // A message as a consumer of another service's topic gets it.
  message placed(const std::string& key, const std::string& payload = "{}") {
    return {
        .id = db->env().ids->next_as<event_id>().text(),
        .source = "settle:orders",
        .type = "order.placed",
        .topic = "orders",
        .key = key,
        .subject = key.empty() ? "" : "order/" + key,
        .content_type = "application/json",
        .time = time.now(),
        .extensions = {{"correlationid", "c-1"}, {"sequence", "7"}, {"settleplace", "p"}, {"tenant", "blue"}},
        .payload = payload};
  }

  dead_letter letter(message of) {
    return {.consumer = "warehouse",
            .consumer_version = "1.2",
            .reason = dead_letter_reason::exhausted,
            .error = "no such article",
            .attempts = 5,
            .history = {{time.now(), failure_class::poison, "no such article"}},
            .failed_at = time.now(),
            .what = std::move(of),
            .log = "orders/3",
            .position = "41"};
  }

  std::int64_t write(const dead_letter& of) {
    auto tx = db->begin();
    auto written = of;
    written.id = write_dead_letter(tx, of);
    tx.commit();
    report_dead_letter(db->env(), written);
    return written.id;
  }

  // So many, with the keys "1", "2", …
  std::vector<std::int64_t> write_many(int count) {
    std::vector<std::int64_t> ids;
    auto tx = db->begin();
    for (int i = 1; i <= count; ++i) ids.push_back(write_dead_letter(tx, letter(placed(std::to_string(i)))));
    tx.commit();
    deliver();
    return ids;
  }

  // What has been published since the last time.
  std::vector<message> deliver() {
    while (drainer->run_once()) {
    }
    return std::exchange(destination.seen, {});
  }

  // The consumer's part: true if this copy ran.
  bool take(const message& m) {
    auto tx = db->begin();
    const bool taken = take_replay(tx, m).has_value();
    tx.commit();
    return taken;
  }

  void fail(const message& m, const std::string& why) {
    auto tx = db->begin();
    replay_failed(tx, m, {time.now(), failure_class::poison, why});
    tx.commit();
  }

  dead_letter only_letter() {
    const auto found = dead_letters(*db);
    EXPECT_EQ(found.size(), 1u);
    return found.at(0);
  }

  std::optional<scratch_database> own;
  temp_dir dir;
  testing::manual_time time;
  quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
  recording_publisher destination;
  std::optional<relay> drainer;
};

}  // namespace settle::test
