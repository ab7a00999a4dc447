// A payment service on either database, and a provider that signs what it sends it. Effects go to a log
// without a unique key, so that a doubled one is seen.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "settle/webhook.hpp"
#include "support/databases.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_signer.hpp"

namespace settle::test {

inline constexpr std::string_view webhook_secret = "whsec_of_the_tests";

struct webhook_world : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (on_postgres()) {
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    db = open();
    migrate(*db);
    auto tx = db->begin();
    tx.execute("create table effect_log (event text not null, kind text not null)");
    tx.commit();
  }

  static bool on_postgres() { return GetParam() == dialect::postgres; }
  static std::string table(const std::string& name) { return (on_postgres() ? "settle." : "settle_") + name; }

  std::unique_ptr<database> open(fault_points* faults = nullptr, time_source* clock = nullptr) {
    const environment env{
        .time = clock != nullptr ? clock : &time, .log = &log, .counters = &counters, .faults = faults};
    return on_postgres() ? postgres::open(own->conninfo(), {.env = env})
                         : sqlite::open(dir.file("service.db"), {.env = env});
  }

  // As Stripe would say it; `at` in seconds is when it happened.
  static std::string payment(const std::string& id, const std::string& type, const std::string& key,
                             std::int64_t at = 1) {
    return R"({"id":")" + id + R"(","type":")" + type + R"(","created":)" + std::to_string(at) +
           R"(,"data":{"object":{"id":")" + key + "\"}}}";
  }

  static webhook::source payments() { return webhook::stripe("payments", {std::string(webhook_secret)}); }

  // Signed now by the database's clock.
  static webhook::decision deliver(const webhook::inbox& to, database& in, const std::string& body) {
    const auto signature = stripe_signature(webhook_secret, in.env().now(), body);
    return to.receive(in, {.headers = {{"Stripe-Signature", signature}}, .body = body});
  }
  webhook::decision deliver(const std::string& body) { return deliver(inbox, *db, body); }

  template <class Where>  // database or transaction
  static webhook::decision apply(const webhook::inbox& to, Where& in, const std::string& body,
                                 const webhook::handler& with) {
    const auto signature = stripe_signature(webhook_secret, in.env().now(), body);
    return to.apply(in, {.headers = {{"Stripe-Signature", signature}}, .body = body}, with);
  }
  webhook::decision apply(const std::string& body, const webhook::handler& with = log_effect) {
    return apply(inbox, *db, body, with);
  }

  static webhook::answer log_effect(const webhook::received& event, transaction& tx) {
    tx.execute("insert into effect_log (event, kind) values ($1, $2)", {event.id, event.type});
    return webhook::answer::done;
  }

  // A capture needs its authorization; before that it is too early. Writes first, to see it undone.
  static webhook::answer in_order(const webhook::received& event, transaction& tx) {
    log_effect(event, tx);
    if (event.type != "captured") return webhook::answer::done;
    const auto rows = tx.execute("select count(*) from effect_log where kind = 'authorized' and event = $1",
                                 {"authorized-" + event.key});
    return rows[0][0].integer() > 0 ? webhook::answer::done : webhook::answer::not_yet;
  }

  std::int64_t number(const std::string& sql) { return db->read().execute(sql)[0][0].integer(); }
  std::int64_t effects() { return number("select count(*) from effect_log"); }
  std::int64_t effects_of(const std::string& event) {
    return number("select count(*) from effect_log where event = '" + event + "'");
  }
  std::string status(const std::string& event) {
    const auto found = webhook::find(*db, "payments", event);
    return found ? found->status : "";
  }
  std::int64_t published() { return number("select count(*) from " + table("outbox_events")); }

  static void drain(webhook::worker& one) {
    while (one.run_once()) {
    }
  }

  std::optional<scratch_database> own;
  temp_dir dir;
  testing::manual_time time;
  quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
  webhook::inbox inbox{payments()};
};

inline std::string dialect_name(const ::testing::TestParamInfo<dialect>& of) {
  return of.param == dialect::sqlite ? "sqlite" : "postgres";
}

}  // namespace settle::test

namespace settle::inline v0::webhook {
inline void PrintTo(outcome of, std::ostream* out) { *out << to_string(of); }
}  // namespace settle::inline v0::webhook
