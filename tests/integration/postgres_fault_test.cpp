// The line to the server cut or stalled at every byte of a transaction.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr query add_key{"test.add_key", "", "insert into keys (key) values ($1)"};

enum class seen { committed, failed, unknown };

class postgres_line : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
    server_.emplace();
    server_->run("create table keys (key bigint primary key)");
    line_.emplace("127.0.0.1", std::stoi(word_of(server_->conninfo(), "port")));
    direct_ = postgres::open(server_->conninfo());
  }

  std::unique_ptr<database> open_through_the_line(duration statement_timeout = 20s) {
    return postgres::open(with(server_->conninfo(),
                               "host=127.0.0.1 port=" + std::to_string(line_->port()) + " sslmode=disable"),
                          {.statement_timeout = statement_timeout, .connections_max = 1});
  }

  // How a key is added: in a round trip before the COMMIT, in the same one as BEGIN and COMMIT, as the last
  // statement together with the COMMIT, or without either of them.
  enum class way { executed, posted, last, alone };

  static seen add(database& db, std::int64_t key, way how) {
    try {
      auto tx = db.begin();
      if (how == way::last) tx.post(add_key, {-key * 1000});
      if (how == way::last || how == way::alone) {
        tx.commit_with({add_key, {key}});
        return seen::committed;
      }
      if (how == way::posted)
        tx.post(add_key, {key});
      else
        tx.execute(add_key, {key});
      tx.commit();
      return seen::committed;
    } catch (const error& e) {
      EXPECT_TRUE(e.retryable()) << e.what();
      return e.outcome_unknown() ? seen::unknown : seen::failed;
    }
  }

  // "Did it commit?", asked by a conflicting write that commits. One that is rolled back would not do: what
  // was sent may still lie unread in the server's buffer, and commit afterwards.
  bool had_committed(std::int64_t key) {
    const auto code = code_of([&] {
      auto tx = direct_->begin();
      tx.execute(add_key, {key});
      tx.commit();
    });
    EXPECT_TRUE(!code || code == errc::constraint_violated);
    return code == errc::constraint_violated;
  }

  // Opens a connection, and prepares what will be needed, before the line is armed.
  static void warm_up(database& db, std::int64_t key) {
    auto tx = db.begin();
    tx.execute(add_key, {-key});
    tx.commit();
  }

  void cut_at_every_byte(tcp_proxy::direction which, way how);

  std::optional<scratch_database> server_;
  std::optional<tcp_proxy> line_;
  std::unique_ptr<database> direct_;
  std::int64_t last_key_ = 0;
};

void postgres_line::cut_at_every_byte(tcp_proxy::direction which, way how) {
  auto db = open_through_the_line();
  std::map<seen, int> outcomes;
  for (std::size_t after = 0;; ++after) {
    const auto key = ++last_key_;
    warm_up(*db, key);
    line_->arm(which, tcp_proxy::cut, after);
    const auto saw = add(*db, key, how);
    const bool struck = line_->struck();
    line_->disarm();
    const bool there = had_committed(key);
    ++outcomes[saw];
    EXPECT_TRUE(there || saw != seen::committed) << "lost, cut after " << after;
    EXPECT_FALSE(there && saw == seen::failed) << "failed and yet there, cut after " << after;
    if (!struck) break;
    ASSERT_LT(after, 5000u) << "the exchange does not end";
  }
  EXPECT_GT(outcomes[seen::unknown], 5) << "no cut came between the commit and its answer";
  EXPECT_TRUE(how != way::executed || outcomes[seen::failed] > 5) << "no cut came before the commit";
}

TEST_F(postgres_line, carries_a_transaction_in_two_round_trips_and_one_without_a_look_in_one) {
  auto db = open_through_the_line();
  warm_up(*db, 1);
  for (const auto how : {way::executed, way::posted, way::last, way::alone}) {
    const auto before = line_->round_trips();
    EXPECT_EQ(add(*db, ++last_key_, how), seen::committed);
    EXPECT_EQ(line_->round_trips() - before, how == way::executed ? 2u : 1u);
  }
}

// Proves O1: wherever the line breaks, an error without effect, or a doubt that a conflicting write resolves
TEST_F(postgres_line, that_is_cut_at_any_byte_to_the_server_loses_and_invents_nothing) {
  cut_at_every_byte(tcp_proxy::to_server, way::executed);
}

// Proves O1
TEST_F(postgres_line, that_is_cut_at_any_byte_to_the_client_loses_and_invents_nothing) {
  cut_at_every_byte(tcp_proxy::to_client, way::executed);
}

// Proves O1
TEST_F(postgres_line, that_is_cut_at_any_byte_of_a_single_round_trip_loses_and_invents_nothing) {
  cut_at_every_byte(tcp_proxy::to_server, way::posted);
  cut_at_every_byte(tcp_proxy::to_client, way::posted);
}

// Proves O1
TEST_F(postgres_line, that_is_cut_at_any_byte_of_a_last_statement_loses_and_invents_nothing) {
  for (const auto how : {way::last, way::alone}) {
    cut_at_every_byte(tcp_proxy::to_server, how);
    cut_at_every_byte(tcp_proxy::to_client, how);
  }
}

// What a pooler says when it has lost its server: without the fields that only a server fills in.
std::string farewell(const std::string& severity, const std::string& sqlstate) {
  const std::string nul(1, '\0');
  const auto body = "S" + severity + nul + "C" + sqlstate + nul + "Mserver conn crashed?" + nul + nul;
  return "E" + std::string(3, '\0') + static_cast<char>(body.size() + 4) + body;
}

// A pooler answers the first step that it has no answer for, whatever became of the last one. Proves O1
TEST_F(postgres_line, that_a_pooler_ends_after_the_commit_leaves_it_in_doubt) {
  auto db = open_through_the_line();
  const std::pair<const char*, const char*> all_words[] = {
      {"FATAL", "08P01"}, {"FATAL", "57P01"}, {"ERROR", "08P01"}};
  for (const auto& [severity, sqlstate] : all_words)
    for (const auto how : {way::posted, way::last, way::alone}) {
      const auto key = ++last_key_;
      warm_up(*db, key);
      line_->arm(tcp_proxy::to_client, tcp_proxy::cut, 0, farewell(severity, sqlstate));
      EXPECT_EQ(add(*db, key, how), seen::unknown)
          << severity << " " << sqlstate << " " << static_cast<int>(how);
      EXPECT_TRUE(line_->struck());
      EXPECT_TRUE(had_committed(key));
    }
}

// A server that refuses a statement in time has not got to the commit. Proves O1
TEST_F(postgres_line, that_goes_on_after_an_error_leaves_no_doubt) {
  auto db = open_through_the_line();
  for (const bool with_values : {true, false}) {
    auto tx = db->begin();
    tx.post(add_key, {++last_key_});
    if (with_values)
      tx.post(add_key, {last_key_});
    else
      tx.post(add_key);  // 08P01, from the server itself
    try {
      tx.commit();
      ADD_FAILURE() << "committed";
    } catch (const error& e) {
      EXPECT_FALSE(e.outcome_unknown()) << e.what();
    }
    EXPECT_FALSE(had_committed(last_key_));
  }
}

TEST_F(postgres_line, that_stalls_in_a_statement_ends_in_a_deadline_and_without_effect) {
  std::int64_t key = 1;
  for (const auto which : {tcp_proxy::to_server, tcp_proxy::to_client}) {
    auto db = open_through_the_line(200ms);
    warm_up(*db, key);
    line_->arm(which, tcp_proxy::stall, 3);
    const auto started = steady::now();
    EXPECT_EQ(add(*db, key, way::executed), seen::failed);
    EXPECT_LT(steady::now() - started, 15s);
    line_->disarm();
    EXPECT_FALSE(had_committed(key));
    EXPECT_EQ(add(*db, key + 1, way::executed), seen::committed) << "the same object goes on";
    key += 2;
  }
}

TEST_F(postgres_line, that_stalls_in_a_commit_ends_in_a_deadline_and_in_doubt) {
  std::int64_t key = 1;
  for (const auto how : {way::posted, way::last, way::alone})
    for (const auto which : {tcp_proxy::to_server, tcp_proxy::to_client}) {
      auto db = open_through_the_line(200ms);
      warm_up(*db, key);
      line_->arm(which, tcp_proxy::stall, 3);
      EXPECT_EQ(add(*db, key, how), seen::unknown);
      line_->disarm();
      had_committed(key);  // either answer is right; from now on it is settled
      EXPECT_TRUE(had_committed(key));
      ++key;
    }
}

TEST_F(postgres_line, that_stalls_while_connecting_ends_in_connect_timeout) {
  line_->arm(tcp_proxy::to_client, tcp_proxy::stall, 3);
  auto db = postgres::open(with(server_->conninfo(), "host=127.0.0.1 port=" + std::to_string(line_->port())),
                           {.connect_timeout = 200ms});
  const auto started = steady::now();
  EXPECT_EQ(code_of([&] { db->begin(); }), errc::store_unavailable);
  EXPECT_LT(steady::now() - started, 10s);
  std::stop_source stop;
  auto patient =
      postgres::open(with(server_->conninfo(), "host=127.0.0.1 port=" + std::to_string(line_->port())),
                     {.connect_timeout = 60s});
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(code_of([&] { patient->begin(stop.get_token()); }), errc::cancelled);
}

}  // namespace
}  // namespace settle::test
