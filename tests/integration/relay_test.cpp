// What the relay promises about the way from the outbox to a broker.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/time_text.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/expect_error.hpp"
#include "support/order_world.hpp"
#include "support/recording_publisher.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::order_world;
using test::recording_publisher;
using test::temp_dir;

struct bench {
  bench() {
    env.time = &time;
    env.log = &log;
    env.counters = &counters;
    db = sqlite::open(dir.file("service.db"), {.env = env});
    migrate(*db);
  }

  event_id emit(const std::string& key, const std::string& payload) {
    auto tx = db->begin();
    const auto id = publish(tx, event{.topic = "t", .type = "e", .key = key, .payload = payload});
    tx.commit();
    return id;
  }

  static void run(relay& r) {
    while (r.run_once()) {
    }
  }

  std::string status_of(const event_id& id) {
    return db->read()
        .execute("select status from settle_outbox_events where event_id = $1", {id})[0][0]
        .text();
  }

  std::string database_id() {
    return db->read().execute("select database_id from settle_identity")[0][0].text();
  }

  temp_dir dir;
  testing::manual_time time;
  test::quiet_log log;
  metrics counters;
  environment env;
  std::unique_ptr<database> db;
  recording_publisher destination;
};

// Proves O8
TEST(relay, every_message_carries_its_cloudevents_attributes) {
  bench b;
  event_id id;
  {
    auto tx = b.db->begin();
    id = publish(tx,
                 event{.topic = "orders",
                       .type = "order.placed",
                       .key = "42",
                       .aggregate_type = "order",
                       .payload = std::string("\0\xff", 2),
                       .content_type = "application/octet-stream",
                       .headers = {{"tenant", "acme"}}},
                 {.cause = {.correlation_id = "c-1", .causation_id = "p-1", .traceparent = "00-ab-cd-01"}});
    tx.commit();
  }
  relay r(*b.db, b.destination, {.source = "/shop"});
  bench::run(r);
  ASSERT_EQ(b.destination.seen.size(), 1u);
  const auto& m = b.destination.seen[0];
  EXPECT_EQ(m.payload, std::string("\0\xff", 2));
  EXPECT_EQ(m.topic, "orders");
  const std::vector<std::pair<std::string, std::string>> expected{
      {"specversion", "1.0"},
      {"id", id.text()},
      {"source", "/shop"},
      {"type", "order.placed"},
      {"subject", "order/42"},
      {"time", to_rfc3339(b.time.now())},
      {"datacontenttype", "application/octet-stream"},
      {"partitionkey", "42"},
      {"causationid", "p-1"},
      {"correlationid", "c-1"},
      {"sequence", "1"},
      {"settledatabase", "settle:" + b.database_id()},
      {"tenant", "acme"},
      {"traceparent", "00-ab-cd-01"},
  };
  EXPECT_EQ(cloudevents_attributes(m), expected);
}

// Proves D7
TEST(relay, counts_how_long_events_waited_until_the_broker_had_them) {
  bench b;
  b.emit("a", "1");
  b.emit("b", "2");
  b.time.advance(40ms);
  auto tx = b.db->begin();
  publish(tx, event{.topic = "t", .type = "e", .key = ""}, {.deliver_at = b.time.now() + 10ms});
  tx.commit();
  b.time.advance(20ms);
  relay r(*b.db, b.destination);
  bench::run(r);
  ASSERT_EQ(b.destination.seen.size(), 3U);
  const auto delays = b.counters.times("settle_relay_publish_delay_seconds", {});
  EXPECT_EQ(delays.count(), 3);
  EXPECT_EQ(delays.sum(), 60ms + 60ms + 10ms) << "one counts from its own time";
}

// Proves D7
TEST(relay, counts_only_what_the_broker_has_confirmed_for_good) {
  bench b;
  b.emit("a", "1");
  b.emit("a", "2");
  b.destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "connection refused"};
  };
  relay r(*b.db, b.destination);
  bench::run(r);
  EXPECT_EQ(b.counters.times("settle_relay_publish_delay_seconds", {}).count(), 0);
}

// Proves O2
TEST(relay, the_outbox_shows_status_times_attempts_and_the_last_error) {
  bench b;
  const auto id = b.emit("a", "1");
  b.destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "connection refused"};
  };
  relay r(*b.db, b.destination);
  bench::run(r);
  const auto read = [&] {
    return b.db->read().execute(
        "select status, attempts, last_error, published_at, created_at, topic, aggregate_type, aggregate_id, "
        "event_type, payload, headers from settle_outbox_events where event_id = $1",
        {id});
  };
  auto row = read();
  EXPECT_EQ(row[0][0].text(), "PENDING");
  EXPECT_EQ(row[0][1].integer(), 1);
  EXPECT_EQ(row[0][2].text(), "connection refused");
  EXPECT_TRUE(row[0][3].is_null());
  b.destination.refuse = nullptr;
  b.time.advance(1s);
  bench::run(r);
  row = read();
  EXPECT_EQ(row[0][0].text(), "PUBLISHED");
  EXPECT_EQ(row[0][1].integer(), 0);
  EXPECT_TRUE(row[0][2].is_null());
  EXPECT_EQ(row[0][3].time(), b.time.now());
  EXPECT_EQ(row[0][4].time(), b.time.now() - 1s);
  EXPECT_EQ(row[0][5].text(), "t");
  EXPECT_EQ(row[0][7].text(), "a");
  EXPECT_EQ(row[0][8].text(), "e");
  EXPECT_EQ(row[0][9].bytes(), "1");
}

TEST(relay, a_destination_that_is_down_pauses_it_and_loses_nothing) {
  bench b;
  for (int i = 0; i < 10; ++i) b.emit("k" + std::to_string(i), std::to_string(i));
  b.destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  relay r(*b.db, b.destination);
  bench::run(r);
  const int calls = b.destination.calls;
  EXPECT_FALSE(r.run_once());
  EXPECT_EQ(b.destination.calls, calls) << "it does not hammer a broker that is down";
  EXPECT_GE(b.log.count("relay_paused"), 1u);
  b.destination.refuse = nullptr;
  b.time.advance(100ms);
  bench::run(r);
  EXPECT_EQ(b.destination.seen.size(), 10u);
  EXPECT_EQ(b.log.count("relay_resumed"), 1u);
}

// Proves O3
TEST(relay, a_clock_that_is_set_back_does_not_prolong_its_pause) {
  bench b;
  b.emit("a", "1");
  b.destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  relay r(*b.db, b.destination);
  bench::run(r);
  b.time.advance(-2h);
  b.destination.refuse = nullptr;
  EXPECT_LE(r.idle_wait(), 500ms);
  b.time.advance(31s);
  bench::run(r);
  EXPECT_EQ(b.destination.payloads(), (std::vector<std::string>{"1"}));
}

// Proves O3, O4
TEST(relay, a_clock_that_is_set_back_does_not_keep_the_shares_of_a_dead_relay_for_as_long) {
  bench b;
  recording_publisher other_destination;
  relay other(*b.db, other_destination);
  {
    relay dead(*b.db, b.destination);
    bench::run(dead);
  }
  for (int i = 0; i < 100; ++i) b.emit("k" + std::to_string(i), "x");
  b.time.advance(-2h);
  bench::run(other);
  b.time.advance(10s);
  bench::run(other);
  EXPECT_EQ(other_destination.seen.size(), 100u);
}

TEST(relay, keeps_its_lease_while_the_destination_is_down) {
  bench b;
  b.emit("a", "1");
  b.destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  relay r(*b.db, b.destination);
  recording_publisher other_destination;
  for (int second = 0; second < 60; ++second) {
    r.run_once();
    b.time.advance(1s);
  }
  relay other(*b.db, other_destination);
  bench::run(other);
  EXPECT_TRUE(other_destination.seen.empty()) << "the share is still owned";
}

// Proves O4
TEST(relay, a_share_with_a_long_way_to_go_does_not_keep_the_others_waiting) {
  bench b;
  for (int i = 0; i < 600; ++i) b.emit("slow", "old");
  relay r(*b.db, b.destination, {.batch_max = 10});
  // The share of "slow" comes late: the destination fails for it at first, while the others pass it.
  b.destination.refuse = [](const message& m) {
    return publish_result{m.key == "slow" ? publish_status::destination_failed : publish_status::confirmed,
                          "wait"};
  };
  b.emit("other", "1");
  for (int i = 0; i < 60; ++i) {
    r.run_once();
    b.time.advance(30s);
  }
  ASSERT_EQ(std::ranges::count(b.destination.payloads(), "1"), 1);
  b.destination.refuse = nullptr;
  r.run_once();
  b.emit("other", "2");
  for (int i = 0; i < 20; ++i) r.run_once();
  EXPECT_EQ(std::ranges::count(b.destination.payloads(), "2"), 1);
  EXPECT_LT(std::ranges::count(b.destination.payloads(), "old"), 600);
}

// A relay sleeps between reading and publishing, another takes over meanwhile: what the sleeper sends
// are copies, and its progress is refused. Proves O4
TEST(relay, a_zombie_relay_cannot_move_the_position) {
  bench b;
  const auto first = b.emit("a", "1");
  recording_publisher other_destination;
  relay other(*b.db, other_destination);
  relay zombie(*b.db, b.destination);
  b.destination.before_publish = [&] {
    b.time.advance(1h);
    b.emit("a", "2");
    bench::run(other);  // takes the shares over and goes on
    EXPECT_EQ(other_destination.payloads(), (std::vector<std::string>{"1", "2"}));
  };
  EXPECT_TRUE(zombie.run_once());
  EXPECT_EQ(b.log.count("relay_ownership_lost"), 1u);
  EXPECT_EQ(b.destination.payloads(), (std::vector<std::string>{"1"})) << "a copy, with the same id";
  EXPECT_EQ(b.destination.seen[0].id, first.text());
  b.emit("a", "3");
  bench::run(zombie);
  EXPECT_EQ(b.destination.payloads(), (std::vector<std::string>{"1"})) << "the share is not its own any more";
  bench::run(other);
  EXPECT_EQ(other_destination.payloads(), (std::vector<std::string>{"1", "2", "3"}));
}

// Proves O3 (many instances), O4
TEST(relay, many_relays_share_the_keys_and_keep_each_keys_order) {
  bench b;
  constexpr int keys = 40;
  constexpr int rounds = 10;
  std::vector<std::unique_ptr<recording_publisher>> destinations;
  std::vector<std::unique_ptr<relay>> relays;
  for (int i = 0; i < 4; ++i) {
    destinations.push_back(std::make_unique<recording_publisher>());
    relays.push_back(std::make_unique<relay>(*b.db, *destinations.back()));
  }
  for (int settle = 0; settle < 3; ++settle) {  // everybody joins, the early ones give up their surplus
    for (auto& r : relays) r->run_once();
    b.time.advance(4s);
  }
  for (int round = 0; round < rounds; ++round)
    for (int key = 0; key < keys; ++key) b.emit(std::to_string(key), std::to_string(round));
  {
    std::vector<std::jthread> threads;
    for (auto& r : relays) threads.emplace_back([&r] { bench::run(*r); });
  }
  std::map<std::string, std::string> per_key;
  int busy = 0;
  for (const auto& d : destinations) {
    busy += d->seen.empty() ? 0 : 1;
    for (const auto& m : d->seen) per_key[m.key] += m.payload;
  }
  EXPECT_EQ(busy, 4) << "each has its part";
  ASSERT_EQ(per_key.size(), static_cast<std::size_t>(keys));
  for (const auto& [key, order] : per_key) EXPECT_EQ(order, "0123456789") << key;
}

// Whoever takes over a share without events must not read the whole outbox again.
TEST(relay, shares_without_events_move_on_with_the_lease) {
  bench b;
  relay r(*b.db, b.destination);
  for (int i = 0; i < 20; ++i) b.emit("one key", "x");
  bench::run(r);
  b.time.advance(4s);
  bench::run(r);
  const auto lowest =
      b.db->read().execute("select min(position), count(*) from settle_shares where scope = 'outbox'");
  EXPECT_EQ(lowest[0][0].integer(), 20);
  EXPECT_EQ(lowest[0][1].integer(), 16);
}

TEST(relay, leaving_hands_over_at_once) {
  bench b;
  recording_publisher other_destination;
  relay first(*b.db, b.destination);
  relay second(*b.db, other_destination);
  bench::run(first);
  first.leave();
  b.emit("a", "1");
  bench::run(second);
  EXPECT_EQ(other_destination.payloads(), (std::vector<std::string>{"1"}));
}

TEST(relay, a_batch_ends_before_it_grows_too_large) {
  bench b;
  for (int i = 0; i < 6; ++i) b.emit("a", std::string(1000, static_cast<char>('0' + i)));
  relay r(*b.db, b.destination, {.batch_bytes_max = 2500});
  bench::run(r);
  EXPECT_EQ(b.destination.seen.size(), 6u);
  EXPECT_EQ(b.destination.calls, 3);
  b.emit("a", std::string(100'000, 'x'));
  bench::run(r);
  EXPECT_EQ(b.destination.seen.size(), 7u) << "a single larger event goes alone";
}

// Nothing to do must cost nothing: no write, no growth of the log.
TEST(relay, an_idle_relay_writes_nothing) {
  bench b;
  b.emit("a", "1");
  relay r(*b.db, b.destination);
  bench::run(r);
  const auto size = std::filesystem::file_size(b.dir.file("service.db-wal"));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(r.run_once());
  EXPECT_EQ(std::filesystem::file_size(b.dir.file("service.db-wal")), size);
}

// One of the user's own.
struct forgetful_publisher final : publisher {
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
    return std::vector<publish_result>(batch.size() - 1);
  }
};

// Proves O4
TEST(relay, a_publisher_that_answers_too_few_messages_is_refused_and_nothing_is_lost) {
  bench b;
  const auto id = b.emit("k", "first");
  forgetful_publisher wrong;
  {
    relay r(*b.db, wrong);
    const auto code = test::code_of([&] { bench::run(r); });
    EXPECT_EQ(code, errc::invalid_argument);
    r.leave();
  }
  EXPECT_EQ(b.status_of(id), "PENDING");
  relay r(*b.db, b.destination);
  b.time.advance(1min);
  bench::run(r);
  EXPECT_EQ(b.destination.payloads(), std::vector<std::string>{"first"});
}

TEST(relay, says_so_when_the_database_was_never_migrated) {
  temp_dir dir;
  const auto db = sqlite::open(dir.file("empty.db"));
  recording_publisher destination;
  relay r(*db, destination);
  try {
    r.run_once();
    FAIL() << "it ran without its tables";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::schema_missing);
    EXPECT_NE(std::string(e.what()).find("settle migrate"), std::string::npos);
  }
}

}  // namespace
}  // namespace settle
