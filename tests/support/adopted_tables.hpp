// Tables of other people in a database of their own, and what the tests of their relay ask.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "settle/driver/broker.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/table_relay.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"

namespace settle::test {

inline constexpr auto status_ddl =
    "create table outbox (id bigint generated always as identity primary key, topic text not null, "
    "aggregate_type varchar(80), aggregate_id text, event_type text not null, "
    "event_id uuid not null default gen_random_uuid(), payload jsonb, headers jsonb, "
    "status varchar(20) not null default 'PENDING', created_at timestamptz not null default now(), "
    "published_at timestamptz, attempts integer not null default 0, last_error varchar(40));"
    "create index on outbox (id) where status = 'PENDING'";

inline constexpr auto debezium_ddl =
    "create table outboxevent (id uuid primary key default gen_random_uuid(), aggregatetype varchar(255) not "
    "null, aggregateid varchar(255) not null, type varchar(255) not null, payload text, n bigserial)";

// As recording_publisher, for many threads.
struct shared_publisher final : publisher {
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
    const std::scoped_lock lock(mutex);
    std::set<std::pair<std::string, std::string>> stopped;  // topics and keys
    std::vector<publish_result> results(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& m = batch[i];
      if (refuse) results[i] = refuse(m);
      if (stopped.contains({m.topic, m.key}))
        results[i] = {publish_status::destination_failed, "behind a refused one"};
      if (results[i].status == publish_status::confirmed)
        seen.push_back(m);
      else if (results[i].status == publish_status::message_rejected && !m.key.empty())
        stopped.emplace(m.topic, m.key);
    }
    return results;
  }

  std::mutex mutex;
  std::function<publish_result(const message&)> refuse;
  std::vector<message> seen;
};

struct adopted_tables : ::testing::Test {
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    // The server's user has the name of our schema, where its tables would land.
    own->run("alter database " + own->name() + " set search_path = public");
    env = {.time = &time, .log = &log, .counters = &counters};
    db = postgres::open(own->conninfo(), {.env = env});
    migrate(*db);
  }

  void add(const std::string& key, const std::string& payload) const {
    own->run(
        fmt::format("insert into outbox (topic, aggregate_type, aggregate_id, event_type, payload) "
                    "values ('orders', 'order', '{}', 'order.placed', '{}')",
                    key, payload));
  }

  static void run(service& r) {
    while (r.run_once({})) {
    }
  }

  std::string cell(const std::string& sql) const { return own->run(sql); }
  std::int64_t count(const std::string& what) const {
    return std::stoll(own->run("select count(*) from " + what));
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
