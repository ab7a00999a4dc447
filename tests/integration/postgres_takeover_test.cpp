// A partition changes its owner while the old one is in the middle of a batch.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "settle/consume.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/list_broker.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

// An owner of a partition with one message, in whatever process.
struct owner {
  owner(const std::string& conninfo, consumer::raw_handler handler, duration takeover_wait = 300ms)
      : db(postgres::open(conninfo, {.env = {.log = &log}})) {
    migrate(*db);
    deliver("1");
    broker.partition = "broker/things/0";
    worker = std::make_unique<consumer>(*db, broker,
                                        consumer_options{.name = "tester", .takeover_wait = takeover_wait});
    worker->on("things", "thing.done", std::move(handler));
  }
  void deliver(const std::string& id) {
    auto& m = broker.messages.emplace_back();
    m.id = m.key = m.payload = id;
    m.topic = "things";
    m.type = "thing.done";
  }
  std::optional<errc> run_once() const {
    return code_of([&] { worker->run_once(); });
  }

  quiet_log log;
  std::unique_ptr<database> db;
  list_broker broker;
  std::unique_ptr<consumer> worker;
};

class postgres_takeover : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    own->run("create table shipped (what text not null)");
  }
  static void ship(const message& m, transaction& tx) {
    tx.execute("insert into shipped values ($1)", {m.id});
  }
  std::string shipped() const { return own->run("select count(*) from shipped"); }

  // Stops in its handler. Afterwards its batch must have failed by the store's fault, and the next one by the
  // fence. The exit code is the number of what was wrong.
  int be_stopped(bool writes_later) const {
    owner first(own->conninfo(), [&](const message& m, transaction& tx) {
      ship(m, tx);
      ::raise(SIGSTOP);
      if (writes_later) ship(m, tx);
    });
    if (first.run_once()) return 1;
    if (first.worker->counts().failures != 0 || first.worker->counts().pauses != 1) return 2;
    for (int tries = 0; first.broker.doubted.empty(); ++tries) {
      if (tries > 500 || first.run_once()) return 3;
      std::this_thread::sleep_for(20ms);
    }
    return first.worker->counts().failures == 0 && first.worker->counts().applied == 0 ? 0 : 4;
  }

  std::optional<scratch_database> own;
};

// Proves C1
TEST_F(postgres_takeover, ends_the_session_of_an_owner_that_was_stopped_in_a_handler) {
  for (const bool writes_later : {false, true}) {
    own.emplace();  // the partition is new: its fence was raised by the owner that is stopped
    own->run("create table shipped (what text not null)");
    child_process stopped([&] { return be_stopped(writes_later); });
    stopped.await_stop();
    const int taken_over = child_process([&] {
                             const auto started = steady::now();
                             owner second(own->conninfo(), ship);
                             while (second.worker->run_once()) {  // carefully: the message may have killed it
                             }
                             const auto took = steady::now() - started;
                             if (took < 300ms || took > 5s) return 2;
                             if (second.log.count("stopped_owner_ended") != 1) return 3;
                             return second.worker->counts().applied == 1 ? 0 : 4;
                           }).wait();
    EXPECT_EQ(taken_over, 0);
    EXPECT_EQ(shipped(), "1");
    stopped.resume();
    EXPECT_EQ(stopped.wait(), 0);
    EXPECT_EQ(shipped(), "1");
    EXPECT_EQ(own->run("select count(*) from settle.processed_events"), "1");
  }
}

// Proves C1
TEST_F(postgres_takeover, waits_for_a_batch_that_ends_in_time_and_ends_nobodys_session) {
  std::jthread second_thread;
  std::optional<errc> second_failed;
  std::int64_t duplicates = 0;
  owner second(own->conninfo(), ship, 30s);
  owner first(own->conninfo(), [&](const message& m, transaction& tx) {
    ship(m, tx);
    second_thread = std::jthread([&] {
      second_failed = second.run_once();
      duplicates = second.worker->counts().duplicates;
    });
    while (own->run("select count(*) from pg_stat_activity where wait_event = 'transactionid'") != "1")
      std::this_thread::yield();
  });
  EXPECT_EQ(first.run_once(), std::nullopt);
  second_thread.join();
  EXPECT_EQ(second_failed, std::nullopt);
  EXPECT_EQ(duplicates, 1) << "it saw what the first one had committed";
  EXPECT_EQ(second.log.count("stopped_owner_ended"), 0u);
  EXPECT_EQ(shipped(), "1");
}

// Proves C1
TEST_F(postgres_takeover, ends_only_the_session_that_holds_the_fence) {
  owner other(own->conninfo(), ship);
  auto bystander = other.db->begin();
  bystander.execute("insert into shipped values ('bystander')");
  bystander.execute(
      "insert into settle.consumer_fences (consumer, partition, epoch) values "
      "('another consumer', 'broker/things/0', 1), ('tester', 'x', 1)");
  own->run(
      "insert into settle.consumer_fences (consumer, partition, epoch) values "
      "('tester', 'broker/things/0', 4)");
  auto holder = other.db->begin();
  holder.execute("select from settle.consumer_fences where partition = 'broker/things/0' for update");
  owner next(own->conninfo(), ship);
  EXPECT_EQ(next.run_once(), std::nullopt);
  EXPECT_EQ(code_of([&] { holder.commit(); }), errc::store_unavailable);
  EXPECT_EQ(code_of([&] { bystander.commit(); }), std::nullopt);
  EXPECT_EQ(shipped(), "2");
}

// A zombie finds the newer owner's fence, waits for nobody and ends nobody. Proves C1
TEST_F(postgres_takeover, by_a_replaced_owner_ends_nobodys_session) {
  owner zombie(own->conninfo(), ship);
  EXPECT_EQ(zombie.run_once(), std::nullopt);
  zombie.deliver("2");
  own->run("update settle.consumer_fences set at_work = false");  // so that nobody need be careful
  std::optional<errc> zombies;
  owner present(own->conninfo(), [&](const message& m, transaction& tx) {
    ship(m, tx);
    zombies = zombie.run_once();
  });
  present.deliver("2");
  EXPECT_EQ(present.run_once(), std::nullopt);
  EXPECT_EQ(zombies, errc::store_busy);
  EXPECT_EQ(zombie.run_once(), std::nullopt);
  EXPECT_EQ(zombie.broker.doubted, std::vector<std::uint32_t>{0}) << "it asks the broker whose it is";
  EXPECT_EQ(zombie.log.count("stopped_owner_ended"), 0u);
  EXPECT_EQ(shipped(), "2");
}

// The short wait is the take-over's alone. Proves C1
TEST_F(postgres_takeover, leaves_the_waits_of_handlers_as_they_are) {
  std::string timeout;
  owner one(own->conninfo(), [&](const message&, transaction& tx) {
    timeout = tx.execute("select current_setting('lock_timeout')")[0][0].text();
  });
  EXPECT_EQ(one.run_once(), std::nullopt);
  EXPECT_EQ(timeout, "10s");
}

}  // namespace
}  // namespace settle::test
