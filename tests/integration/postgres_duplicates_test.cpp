// The same messages in several consumers at once, on PostgreSQL: brokers without owners deliver as they like.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <optional>
#include <thread>

#include "settle/consume.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "support/list_broker.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// A consumer with everything of its own: connections, broker, log and counters.
struct process {
  process(const std::string& conninfo, consumer::raw_handler handler, std::size_t batch_max = 64)
      : db(postgres::open(conninfo, {.env = {.log = &log, .counters = &counters}})),
        worker(*db, broker, {.name = "tester", .batch_max = batch_max}) {
    worker.on("things", "thing.done", std::move(handler));
  }

  void deliver(const std::string& id) {
    auto& m = broker.messages.emplace_back();
    m.id = m.payload = id;
    m.key = "key of " + id;
    m.topic = "things";
    m.type = "thing.done";
  }
  void drain() {
    while (worker.run_once()) {
    }
  }
  // What it counts, it also says, to whoever reads metrics and to whoever reads logs.
  std::int64_t duplicates() {
    const auto counted = worker.counts().duplicates;
    EXPECT_EQ(counters.value("settle_consumer_duplicates_total", {{"consumer", "tester"}}), counted);
    EXPECT_EQ(std::ssize(broker.acknowledged), std::ssize(broker.messages));
    return counted;
  }

  quiet_log log;
  metrics counters;
  list_broker broker;
  std::unique_ptr<database> db;
  consumer worker;
};

class postgres_duplicates : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    own->run("create table shipped (what text not null)");  // nothing here would refuse a second one
    migrate(*postgres::open(own->conninfo()));
  }
  static void ship(const message& m, transaction& tx) {
    tx.execute("insert into shipped values ($1)", {m.id});
  }
  // How many effects, and how many different ones.
  std::string shipped() const {
    return own->run("select count(*) || ' ' || count(distinct what) from shipped");
  }
  void await_one_that_waits() const {
    while (
        own->run("select count(*) from pg_stat_activity where datname = current_database() and wait_event = "
                 "'transactionid'") != "1")
      std::this_thread::sleep_for(1ms);
  }

  std::optional<scratch_database> own;
};

// The second one claims while the first one's handler runs. Proves C5, C7
TEST_F(postgres_duplicates, of_two_consumers_at_one_message_the_second_waits_and_skips) {
  process second(own->conninfo(), ship);
  std::jthread at_once;
  process first(own->conninfo(), [&](const message& m, transaction& tx) {
    ship(m, tx);
    at_once = std::jthread([&] { second.drain(); });
    await_one_that_waits();
  });
  first.deliver("1");
  second.deliver("1");
  first.drain();
  at_once.join();
  EXPECT_EQ(shipped(), "1 1");
  EXPECT_EQ(first.worker.counts().applied, 1);
  EXPECT_EQ(first.duplicates(), 0);
  EXPECT_EQ(second.worker.counts().applied, 0);
  EXPECT_EQ(second.duplicates(), 1);
  EXPECT_EQ(second.log.count("duplicate_skipped"), 1u);
}

// Its claim is gone with what it wrote, so it must not count. Proves C5
TEST_F(postgres_duplicates, if_the_first_one_rolls_back_the_second_one_runs) {
  process second(own->conninfo(), ship);
  std::jthread at_once;
  bool down = true;
  process first(own->conninfo(), [&](const message& m, transaction& tx) {
    ship(m, tx);
    if (!std::exchange(down, false)) return;
    at_once = std::jthread([&] { second.drain(); });
    await_one_that_waits();
    throw handler_failed(failure_class::outage, "the bank is closed");
  });
  first.deliver("1");
  second.deliver("1");
  first.worker.run_once();
  at_once.join();
  EXPECT_EQ(second.worker.counts().applied, 1);
  while (first.worker.counts().applied + first.worker.counts().duplicates == 0) {
    first.worker.run_once();
    std::this_thread::sleep_for(1ms);
  }
  first.drain();
  EXPECT_EQ(shipped(), "1 1");
  EXPECT_EQ(first.duplicates(), 1);
}

// The seed's third test, and copies within a batch. The second one gets them from the other end. Proves C5,
// C7, V1
TEST_F(postgres_duplicates, of_a_race_for_the_same_messages_each_is_applied_once) {
  constexpr int messages = 40;
  process one(own->conninfo(), ship, 3), other(own->conninfo(), ship, 5);
  for (int i = 0; i < messages; ++i) {
    one.deliver(std::to_string(i));
    if (i % 4 == 0) one.deliver(std::to_string(i));
    other.deliver(std::to_string(messages - 1 - i));
  }
  std::barrier start(2);
  std::vector<std::jthread> both;
  for (auto* each : {&one, &other})
    both.emplace_back([&start, each] {
      start.arrive_and_wait();
      each->drain();
    });
  both.clear();
  EXPECT_EQ(shipped(), "40 40");
  EXPECT_EQ(one.worker.counts().applied + other.worker.counts().applied, messages);
  EXPECT_EQ(one.duplicates() + other.duplicates(), messages + messages / 4);
  EXPECT_EQ(one.log.count("duplicate_skipped") + other.log.count("duplicate_skipped"),
            static_cast<std::size_t>(messages + messages / 4));
  EXPECT_EQ(one.worker.counts().failures + other.worker.counts().failures, 0);
}

// Proves C5, C7
TEST_F(postgres_duplicates, of_copies_in_one_batch_the_first_is_applied) {
  process alone(own->conninfo(), ship);
  for (const auto* id : {"1", "2", "1", "3", "2", "1"}) alone.deliver(id);
  alone.drain();
  EXPECT_EQ(shipped(), "3 3");
  EXPECT_EQ(alone.worker.counts().applied, 3);
  EXPECT_EQ(alone.duplicates(), 3);
  EXPECT_EQ(alone.log.count("duplicate_skipped"), 3u);
}

}  // namespace
}  // namespace settle::test
