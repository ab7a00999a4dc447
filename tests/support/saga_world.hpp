// Sagas over tables of their own, on either database: every effect is a row without constraints, so that one
// that happens twice is seen.
#pragma once

#include <string>
#include <vector>

#include "settle/saga.hpp"
#include "support/own_tables.hpp"

namespace settle::test {

using texts = std::vector<std::string>;

// What a saga of these tests is about: its id, and which steps are to fail in which way.
struct trip {
  std::string id;
  std::string plan = {};  // words like "hotel:refuse"

  bool has(const std::string& word) const {
    return (" " + plan + " ").find(" " + word + " ") != std::string::npos;
  }
};

}  // namespace settle::test

template <>
struct settle::codec<settle::test::trip> {
  static std::string encode(const test::trip& t) { return t.id + "|" + t.plan; }
  static test::trip decode(std::string_view bytes) {
    const auto bar = bytes.find('|');
    return {std::string(bytes.substr(0, bar)), std::string(bytes.substr(bar + 1))};
  }
};

namespace settle::test {

inline void note(transaction& tx, const std::string& id, const std::string& what) {
  tx.execute("insert into trip_effects (saga, what) values ($1, $2)", {id, what});
}

// A local step that leaves a row, and its undo, which leaves another.
inline auto booking(const std::string& name) {
  return local(name,
               [name](transaction& tx, const trip& t) {
                 note(tx, t.id, name);
                 if (t.has(name + ":refuse")) throw step_refused("no " + name + " for " + t.id);
                 if (t.has(name + ":fail")) throw std::runtime_error(name + " fails");
                 return name + " of " + t.id;
               })
      .undo([name](transaction& tx, const trip& t, const std::string& booked) {
        if (t.has("undo_" + name + ":fail")) throw std::runtime_error("cannot undo " + name);
        note(tx, t.id, "undo " + booked);
      });
}

// One database of the server for all tests of a suite: to migrate a new one takes seconds.
struct saga_tests : own_tables {
  static void TearDownTestSuite() { shared.reset(); }

  void SetUp() override {
    if (on_postgres()) {
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      if (!shared) shared.emplace();
    }
    db = open();
    migrate(*db);
    if (on_postgres()) shared->forget_events();
    run(on_postgres()
            ? "create table if not exists trip_effects (n bigint generated always as identity, saga text not "
              "null, what text not null); create table if not exists bank (call_key text primary key, saga "
              "text not null, what text not null); truncate trip_effects, bank, settle.sagas, "
              "settle.saga_journal, settle.saga_waits, settle.saga_mailbox, settle.saga_fences, "
              "settle.saga_guards, settle.shares, settle.members"
            : "create table trip_effects (n integer primary key, saga text not null, what text not null); "
              "create table bank (call_key text primary key, saga text not null, what text not null)");
  }

  std::unique_ptr<database> open(fault_points* faults = nullptr) {
    const environment env{.time = &time, .log = &log, .counters = &counters, .faults = faults};
    if (!on_postgres()) return sqlite::open(dir.file("service.db"), {.env = env, .busy_timeout = 60s});
    return postgres::open(shared->conninfo(), {.env = env, .busy_timeout = 60s});
  }

  saga_host_options options() const { return {.name = "trips", .call_threads = 0}; }

  // Until nothing is due any more.
  static void drain(saga_host& host) {
    for (int turns = 0; host.run_once(); ++turns) ASSERT_LT(turns, 10'000) << "it spins";
  }

  texts effects(const std::string& id) {
    const auto found = db->read().execute("select what from trip_effects where saga = $1 order by n", {id});
    texts all;
    for (std::size_t i = 0; i < found.size(); ++i) all.push_back(found[i][0].text());
    return all;
  }

  std::string cell(const std::string& column, saga_id of) {
    const auto found = db->read().execute(
        "select cast(" + column + " as text) from " + table("saga_instances") + " where saga_id = $1", {of});
    return found[0][0].is_null() ? "null" : found[0][0].text();
  }
  std::string status(saga_id of) { return cell("status", of); }

  static inline std::optional<scratch_database> shared;
};

}  // namespace settle::test
