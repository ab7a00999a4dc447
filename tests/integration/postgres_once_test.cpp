// Idempotent requests on PostgreSQL: over a line that breaks, and while the first one runs in another
// process.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "settle/claims.hpp"
#include "settle/error.hpp"
#include "settle/once.hpp"
#include "settle/postgres.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::tcp_proxy;

constexpr query add_deed{"test_add_deed", "", "insert into deeds (what) values ($1)"};

struct postgres_requests : ::testing::Test {
  void SetUp() override {
    if (const auto why = test::postgres_missing(); !why.empty()) GTEST_SKIP() << why;
    server.emplace();
    direct = postgres::open(server->conninfo());
    migrate(*direct);
    server->run("create table deeds (what text not null)");
    line.emplace("127.0.0.1", std::stoi(test::word_of(server->conninfo(), "port")));
  }

  std::unique_ptr<database> through_the_line() {
    const auto address = "host=127.0.0.1 port=" + std::to_string(line->port()) + " sslmode=disable";
    return postgres::open(test::with(server->conninfo(), address),
                          {.statement_timeout = 20s, .connections_max = 1});
  }

  // Of a database, or in a transaction.
  static once_result ask(auto& on, const std::string& key) {
    return once(on, {"shop", "ann", key}, [&](transaction& tx) {
      tx.post(add_deed, {key});
      return answer{.body = "thanks"};
    });
  }

  std::int64_t deeds(const std::string& key) {
    return direct->read().execute("select count(*) from deeds where what = $1", {key})[0][0].integer();
  }

  // The server may need a moment to see that the line of the first one is gone.
  once_result repeat(const std::string& key) {
    for (;;) {
      auto result = ask(*direct, key);
      if (result.outcome != once_outcome::in_flight) return result;
      std::this_thread::sleep_for(1ms);
    }
  }

  // However it broke, the caller repeats the request, over a line that works.
  void cut_everywhere(tcp_proxy::direction which) {
    auto db = through_the_line();
    std::size_t at = 0;
    for (bool struck = true; struck; at += 4) {
      ask(*db, "warm " + std::to_string(which) + std::to_string(at));
      const auto key = "cut " + std::to_string(which) + std::to_string(at);
      line->arm(which, tcp_proxy::cut, at);
      try {
        EXPECT_EQ(ask(*db, key).outcome, once_outcome::executed);
        EXPECT_EQ(deeds(key), 1) << "it was told so";
      } catch (const error& e) {
        EXPECT_TRUE(e.retryable()) << e.what();
      }
      struck = line->struck();
      line->disarm();
      EXPECT_EQ(repeat(key).what.body, "thanks");
      EXPECT_EQ(deeds(key), 1) << "cut after " << at << " bytes";
    }
    EXPECT_GT(at, 100u);
  }

  // The record of a key that comes again is forgotten when so many bytes of the request have reached the
  // server. Nothing: it had been read before.
  std::optional<std::future<once_result>> ask_while_forgotten(std::size_t at,
                                                              const std::function<once_result()>& again) {
    line->arm(tcp_proxy::to_server, tcp_proxy::stall, at);
    auto asked = std::async(std::launch::async, again);
    while (!line->struck())
      if (asked.wait_for(1ms) == std::future_status::ready) return std::nullopt;
    server->run("delete from settle.idempotency_keys");
    line->disarm();
    return asked;
  }

  std::optional<test::scratch_database> server;
  std::optional<tcp_proxy> line;
  std::unique_ptr<database> direct;
};

// Proves I4
TEST_F(postgres_requests, cost_one_round_trip_beside_their_transaction) {
  auto db = through_the_line();
  ask(*db, "warm");
  const auto before = line->round_trips();
  EXPECT_EQ(ask(*db, "measured").outcome, once_outcome::executed);
  EXPECT_EQ(line->round_trips() - before, 2u) << "the look, and the work with its record and the commit";
}

// Proves I1
TEST_F(postgres_requests, that_come_again_cost_two_round_trips) {
  auto db = through_the_line();
  ask(*db, "again");
  ask(*db, "again");
  const auto before = line->round_trips();
  EXPECT_EQ(ask(*db, "again").outcome, once_outcome::replayed);
  EXPECT_EQ(line->round_trips() - before, 2u) << "the look, and the record with the end of the transaction";
}

// Proves I4: who only reads leaves nobody in doubt
TEST_F(postgres_requests, that_come_again_over_a_line_that_is_cut_are_certain_to_have_done_nothing) {
  auto db = through_the_line();
  ask(*direct, "again");
  for (const auto which : {tcp_proxy::to_server, tcp_proxy::to_client}) {
    std::size_t at = 0;
    for (bool struck = true; struck; at += 4) {
      ask(*db, "again");
      line->arm(which, tcp_proxy::cut, at);
      try {
        EXPECT_EQ(ask(*db, "again").what.body, "thanks");
      } catch (const error& e) {
        EXPECT_TRUE(e.retryable() && !e.outcome_unknown()) << "cut after " << at << " bytes: " << e.what();
      }
      struck = line->struck();
      line->disarm();
    }
    EXPECT_GT(at, 100u);
  }
  EXPECT_EQ(deeds("again"), 1);
}

// Proves I7: between the look for the record and reading it
TEST_F(postgres_requests, that_come_again_while_they_are_forgotten_are_as_good_as_new) {
  auto db = through_the_line();
  ask(*db, "again");
  ask(*db, "again");
  int between = 0;
  for (std::size_t at = 0;; at += 16) {
    const auto effects = deeds("again");
    const auto trips = line->round_trips();
    auto asked = ask_while_forgotten(at, [&] { return ask(*db, "again"); });
    if (!asked) break;
    const bool executed = asked->get().outcome == once_outcome::executed;
    EXPECT_EQ(deeds("again") - effects, executed ? 1 : 0) << "forgotten after " << at << " bytes";
    if (executed && line->round_trips() - trips == 4) ++between;  // a look in vain, and another one
    ask(*direct, "again");
  }
  EXPECT_GT(between, 0);
}

// Proves I7
TEST_F(postgres_requests, that_are_forgotten_in_a_transaction_of_the_callers_run_or_ask_it_to_come_again) {
  auto db = through_the_line();
  ask(*db, "again");
  const auto in_a_transaction = [&] {
    auto tx = db->begin();
    auto result = ask(tx, "again");
    tx.commit();
    return result;
  };
  in_a_transaction();
  int refused = 0;
  for (std::size_t at = 0;; at += 16) {
    const auto before = deeds("again");
    auto asked = ask_while_forgotten(at, in_a_transaction);
    if (!asked) break;
    try {
      const auto outcome = asked->get().outcome;
      EXPECT_EQ(deeds("again") - before, outcome == once_outcome::executed ? 1 : 0);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::store_busy) << e.what();
      EXPECT_EQ(deeds("again"), before);
      ++refused;
    }
    ask(*direct, "again");
  }
  EXPECT_GT(refused, 0);
}

// Proves I4: what was answered was durable
TEST_F(postgres_requests, cannot_make_their_record_less_durable) {
  server->run("create table seen (setting text)");
  server->run(
      "create function look() returns trigger language plpgsql as $$ begin "
      "insert into seen values (current_setting('synchronous_commit')); return null; end $$");
  server->run(
      "create constraint trigger at_commit after insert on settle.idempotency_keys deferrable initially "
      "deferred for each row execute function look()");
  for (const std::string sql : {"set synchronous_commit = off", "set local synchronous_commit = off",
                                "select set_config('synchronous_commit', 'off', false)",
                                "select set_config('synchronous_commit', 'local', true)"}) {
    const auto relaxed = [&](transaction& tx) {
      tx.execute(sql);
      return answer{.body = "thanks"};
    };
    EXPECT_EQ(once(*direct, {"shop", "ann", sql}, relaxed).outcome, once_outcome::executed);
    EXPECT_EQ(server->run("select string_agg(distinct setting, ' ') from seen"), "on") << sql;
  }
}

// Proves I4: nor are the next requests of a session
TEST_F(postgres_requests, cannot_leave_their_session_less_durable) {
  const auto one = postgres::open(server->conninfo(), {.connections_max = 1});
  for (const std::string sql : {"set synchronous_commit = off", "set local synchronous_commit = off"}) {
    const auto relaxed = [&](transaction& tx) {
      tx.execute(sql);
      return answer{};
    };
    const auto nesting = [&](transaction& tx) {
      once(tx, {"shop", "ann", "inner " + sql}, relaxed);
      return answer{};
    };
    once(*one, {"shop", "ann", sql}, relaxed);
    once(*one, {"shop", "ann", "outer " + sql}, nesting);
    EXPECT_EQ(one->read().execute("select current_setting('synchronous_commit')")[0][0].text(), "on") << sql;
  }
}

// Proves I4: an unknown outcome is resolved by waiting for the identity, never guessed
TEST_F(postgres_requests, over_a_line_that_is_cut_anywhere_have_one_effect) {
  cut_everywhere(tcp_proxy::to_server);
  cut_everywhere(tcp_proxy::to_client);
}

// Proves I6: 422 wins over 409, wherever the first request runs
TEST_F(postgres_requests, at_work_elsewhere_are_told_from_others_that_use_their_key) {
  const auto other_process = postgres::open(server->conninfo());
  const auto never = [](transaction&) -> answer { throw std::logic_error("it must not run"); };
  const auto asks = [&](std::string_view fingerprint) {
    return once(*other_process, {"shop", "ann", "click"}, never, {.fingerprint = fingerprint}).outcome;
  };
  const auto at_work = [&](std::string_view fingerprint, const auto& meanwhile) {
    const auto work = [&](transaction&) -> answer {
      meanwhile();
      return {.keep = keeps::nothing};
    };
    once(*direct, {"shop", "ann", "click"}, work, {.fingerprint = fingerprint});
  };
  at_work("a", [&] {
    EXPECT_EQ(asks("a"), once_outcome::in_flight);
    EXPECT_EQ(asks("b"), once_outcome::mismatch);
    EXPECT_EQ(asks("c"), once_outcome::mismatch) << "each is compared with the one that runs";
    EXPECT_EQ(asks(""), once_outcome::in_flight) << "nothing to compare";
    auto own = other_process->begin();
    const auto joined = once(own, {"shop", "ann", "click"}, never, {.fingerprint = "b"});
    EXPECT_EQ(joined.outcome, once_outcome::mismatch) << "in a transaction of its own";
    EXPECT_EQ(asks("b"), once_outcome::in_flight) << "nobody can say while that one is open; never wrong";
  });
  at_work("", [&] { EXPECT_EQ(asks("b"), once_outcome::in_flight) << "nothing to compare"; });
}

// Proves I6: a key that its holder is just letting go is not taken for another request's
TEST_F(postgres_requests, that_end_while_others_ask_are_never_taken_for_another_request) {
  std::vector<std::unique_ptr<database>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(postgres::open(server->conninfo()));
  std::vector<std::jthread> clients;
  for (auto& db : processes)
    clients.emplace_back([&db] {
      for (int i = 0; i < 500; ++i) {
        const auto result =
            once(*db, {"shop", "ann", "click"}, [](transaction&) { return answer{.keep = keeps::nothing}; },
                 {.fingerprint = "the same"});
        EXPECT_NE(result.outcome, once_outcome::mismatch);
      }
    });
}

// Proves I1, I7: whoever sweeps has a clock of its own, and removing too early is running twice
TEST_F(postgres_requests, are_not_forgotten_early_by_a_process_whose_clock_is_ahead) {
  EXPECT_EQ(ask(*direct, "order").outcome, once_outcome::executed);
  const request_identity claimed{"shop", "ann", "claimed"};
  const auto keys = open_claims(*direct);
  keys->complete(claimed, keys->claim({.who = claimed}).token, {.body = "thanks"});
  testing::manual_time ahead(direct->env().now() + 26h);
  const auto sweeper = postgres::open(server->conninfo(), {.env = {.time = &ahead}});
  EXPECT_EQ(forget_expired_keys(*sweeper), 0);
  EXPECT_EQ(ask(*direct, "order").outcome, once_outcome::replayed);
  EXPECT_EQ(keys->claim({.who = claimed}).outcome, claim_outcome::completed);
  EXPECT_EQ(deeds("order"), 1);
}

}  // namespace
}  // namespace settle
