// Outbox tables of other people, relayed as they are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <list>
#include <map>
#include <random>
#include <thread>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/table_relay.hpp"
#include "support/adopted_tables.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;
using test::debezium_ddl;
using test::shared_publisher;
using test::status_ddl;

struct table_relays : test::adopted_tables {};

// Proves O3, O8
TEST_F(table_relays, a_status_table_is_published_in_order_and_marked) {
  own->run(status_ddl);
  for (int i = 0; i < 25; ++i) add("k", std::to_string(i));
  table_relay r(*db, destination, status_table("public.outbox"), {.batch_max = 10});
  run(r);
  names expected;
  for (int i = 0; i < 25; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(destination.payloads(), expected);
  EXPECT_EQ(count("outbox where status = 'PUBLISHED' and published_at is not null and attempts = 0"), 25);
  run(r);
  EXPECT_EQ(destination.seen.size(), 25u);

  const auto& m = destination.seen[0];
  EXPECT_EQ(m.id, cell("select event_id from outbox where id = 1"));
  EXPECT_EQ(m.topic, "orders");
  EXPECT_EQ(m.type, "order.placed");
  EXPECT_EQ(m.key, "k");
  EXPECT_EQ(m.subject, "order/k");
  EXPECT_EQ(m.content_type, "application/json");
  EXPECT_TRUE(m.source.starts_with("settle:") && m.source.ends_with("/public.outbox")) << m.source;
  EXPECT_EQ(std::to_string(m.time.time_since_epoch().count()),
            cell("select (extract(epoch from created_at) * 1000000)::bigint from outbox where id = 1"));
  EXPECT_FALSE(m.extensions.contains("sequence")) << "numbers of such a table say nothing about copies";
  EXPECT_EQ(counters.value("settle_table_relay_published_total", {{"table", "public.outbox"}}), 25);
}

// Proves O3, O8
TEST_F(table_relays, a_debezium_table_is_published_and_emptied) {
  own->run(debezium_ddl);
  for (int i = 0; i < 5; ++i)
    own->run(
        fmt::format("insert into outboxevent (aggregatetype, aggregateid, type, payload) "
                    "values ('order', '7', 'OrderCreated', '{{\"n\": {}}}')",
                    i));
  const auto first = cell("select id from outboxevent where n = 1");
  auto mapping = debezium_table("public.outboxevent");
  mapping.order_by = "n";
  table_relay r(*db, destination, mapping, {.batch_max = 2});
  run(r);
  EXPECT_EQ(destination.payloads(),
            (names{R"({"n": 0})", R"({"n": 1})", R"({"n": 2})", R"({"n": 3})", R"({"n": 4})"}));
  EXPECT_EQ(destination.seen[0].topic, "outbox.event.order");
  EXPECT_EQ(destination.seen[0].type, "OrderCreated");
  EXPECT_EQ(destination.seen[0].id, first);
  EXPECT_EQ(count("outboxevent"), 0);
}

// Proves O3
TEST_F(table_relays, tables_that_say_it_with_a_flag_or_a_time_are_marked_their_way) {
  own->run("create table flagged (no serial primary key, body bytea, sent boolean not null default false)");
  own->run("create table timed (no serial primary key, body text, sent_at timestamp)");
  own->run(R"(insert into flagged (body) values ('\x00ff'); insert into timed (body) values ('hello'))");
  table_mapping m{.table = "public.flagged",
                  .id = "no",
                  .topic = {.text = "t"},
                  .type = {.text = "e"},
                  .payload = "body",
                  .published = "sent"};
  table_relay flagged(*db, destination, m);
  run(flagged);
  m.table = "public.timed";
  m.published.clear();
  m.published_at = "sent_at";
  table_relay timed(*db, destination, m);
  run(timed);
  EXPECT_EQ(destination.payloads(), (names{std::string("\0\xff", 2), "hello"}));
  EXPECT_EQ(count("flagged where sent"), 1);
  EXPECT_EQ(cell("select extract(epoch from sent_at)::bigint from timed"),
            std::to_string(std::chrono::floor<std::chrono::seconds>(time.now()).time_since_epoch().count()));
  EXPECT_EQ(destination.seen[0].key, "");
}

// Proves O3
TEST_F(table_relays, a_commit_that_comes_late_is_found) {
  own->run(status_ddl);
  auto slow = db->begin();
  slow.execute(
      "insert into outbox (topic, aggregate_id, event_type, payload) values ('t', 'slow', 'e', '0')");
  add("a", "1");
  table_relay r(*db, destination, status_table("public.outbox"));
  run(r);
  EXPECT_EQ(destination.payloads(), names{"1"});
  slow.commit();
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"1", "0"}));
}

// A writer that does not wait for the disk: what the relay shows to others must not vanish in a crash.
// Proves O12
TEST_F(table_relays, what_is_published_is_on_disk) {
  own->run(status_ddl);
  table_relay r(*db, destination, status_table("public.outbox"));
  run(r);
  std::string after_commit;
  bool on_disk = false;
  destination.before_publish = [&] {
    on_disk = cell("select pg_current_wal_flush_lsn() >= '" + after_commit + "'") == "t";
  };
  own->run(
      "begin; set local synchronous_commit = off; "
      "insert into outbox (topic, aggregate_id, event_type, payload) values ('t', 'k', 'e', '1'); commit");
  after_commit = cell("select pg_current_wal_insert_lsn()");
  run(r);
  EXPECT_EQ(destination.seen.size(), 1u);
  EXPECT_TRUE(on_disk);
}

// Between the read of a batch and the next one two transactions of one key commit, one after the other, and
// the first has a lower number than what was already read. Proves O4
TEST_F(table_relays, what_commits_between_two_reads_keeps_its_order) {
  own->run(status_ddl);
  add("x", "1");
  auto first = db->begin();
  first.execute("insert into outbox (topic, aggregate_id, event_type, payload) values ('t', 'k', 'e', '10')");
  add("y", "2");
  destination.before_publish = [&] {
    first.commit();
    add("k", "11");
  };
  table_relay r(*db, destination, status_table("public.outbox"), {.batch_max = 2});
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"1", "2", "10", "11"}));
}

// Proves O3, O4
TEST_F(table_relays, a_rejected_message_is_tried_five_times_then_failed_and_only_its_key_waits) {
  own->run(status_ddl);
  shared_publisher strict;
  strict.refuse = [](const message& m) {
    return m.payload == "1" ? publish_result{publish_status::message_rejected, std::string(100, 'x')}
                            : publish_result{};
  };
  add("bad", "0");
  add("bad", "1");
  add("bad", "2");
  add("good", "3");
  table_relay r(*db, strict, status_table("public.outbox"));
  const auto payloads = [&] {
    names all;
    for (const auto& m : strict.seen) all.push_back(m.payload);
    return all;
  };
  for (int attempt = 1; attempt < 5; ++attempt) {
    run(r);
    EXPECT_EQ(payloads(), (names{"0", "3"})) << attempt;
    EXPECT_EQ(cell("select attempts from outbox where id = 2"), std::to_string(attempt));
    EXPECT_EQ(cell("select status || attempts from outbox where id = 3"), "PENDING0") << "not its fault";
    add("good", "4");
    run(r);
    EXPECT_EQ(payloads().back(), "4") << "others go on meanwhile";
    strict.seen.resize(2);
    EXPECT_EQ(cell("select attempts from outbox where id = 2"), std::to_string(attempt)) << "it has to wait";
    time.advance(5s);
  }
  EXPECT_EQ(log.count("table_relay_message_failed"), 0u);
  run(r);
  EXPECT_EQ(payloads(), (names{"0", "3", "2"})) << "the key goes on behind the failed one";
  EXPECT_EQ(cell("select status || ' ' || attempts || ' ' || length(last_error) from outbox where id = 2"),
            "FAILED 5 40")
      << "the reason is cut to fit its column";
  EXPECT_EQ(log.count("table_relay_message_failed"), 1u);
  EXPECT_EQ(counters.value("settle_table_relay_failed_total", {{"table", "public.outbox"}}), 1);

  strict.refuse = {};
  own->run("update outbox set status = 'PENDING', attempts = 0 where status = 'FAILED'");
  time.advance(1min);
  run(r);
  EXPECT_EQ(payloads().back(), "1");
}

// No broker keeps an order across topics. Proves O4
TEST_F(table_relays, the_same_key_on_another_topic_does_not_wait) {
  own->run(status_ddl);
  const auto add_on = [&](const std::string& topic, const std::string& payload) {
    own->run(
        fmt::format("insert into outbox (topic, aggregate_id, event_type, payload) "
                    "values ('{}', 'k', 'e', '{}')",
                    topic, payload));
  };
  destination.refuse = [](const message& m) {
    return m.payload == "1" ? publish_result{publish_status::message_rejected, "too strange"}
                            : publish_result{};
  };
  add_on("t", "1");
  add_on("u", "2");
  add_on("t", "3");
  table_relay r(*db, destination, status_table("public.outbox"));
  run(r);
  add_on("u", "4");
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"2", "4"}));
  destination.refuse = {};
  time.advance(1s);
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"2", "4", "1", "3"}));
}

// Proves O3
TEST_F(table_relays, attempts_count_on_with_another_relay) {
  own->run(status_ddl);
  destination.refuse = [](const message&) {
    return publish_result{publish_status::message_rejected, "never"};
  };
  add("k", "1");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(cell("select status || attempts from outbox"), "PENDING" + std::to_string(i));
    table_relay r(*db, destination, status_table("public.outbox"));
    run(r);
    r.leave();
  }
  EXPECT_EQ(cell("select status || attempts from outbox"), "FAILED5");
}

// Proves O3, O4
TEST_F(table_relays, without_a_failed_state_a_rejected_message_holds_its_key_for_ever) {
  own->run(debezium_ddl);
  own->run(
      "insert into outboxevent (aggregatetype, aggregateid, type, payload) "
      "values ('o', 'bad', 'e', '1'), ('o', 'bad', 'e', '2'), ('o', 'good', 'e', '3')");
  shared_publisher strict;
  strict.refuse = [](const message& m) {
    return m.payload == "1" ? publish_result{publish_status::message_rejected, "no"} : publish_result{};
  };
  auto mapping = debezium_table("public.outboxevent");
  mapping.order_by = "n";
  table_relay r(*db, strict, mapping);
  for (int i = 0; i < 20; ++i) {
    run(r);
    time.advance(1min);
  }
  ASSERT_EQ(strict.seen.size(), 1u);
  EXPECT_EQ(strict.seen[0].payload, "3");
  EXPECT_EQ(count("outboxevent"), 2);
  strict.refuse = {};
  run(r);
  EXPECT_EQ(strict.seen.size(), 3u);
  EXPECT_EQ(strict.seen[1].payload, "1");
}

// Proves O3
TEST_F(table_relays, a_row_that_makes_no_message_is_failed_like_a_rejected_one) {
  own->run(status_ddl);
  own->run("alter table outbox alter event_type drop not null");
  own->run("insert into outbox (topic, aggregate_id, event_type, payload) values ('orders', 'k', null, '1')");
  add("k", "2");
  table_relay r(*db, destination, status_table("public.outbox"), {.attempts_max = 2});
  run(r);
  EXPECT_EQ(destination.seen.size(), 0u) << "the next of its key waits";
  time.advance(1min);
  run(r);
  EXPECT_EQ(destination.payloads(), names{"2"});
  EXPECT_TRUE(cell("select status || ' ' || last_error from outbox where id = 1")
                  .starts_with("FAILED invalid_name: the event type is empty"));
}

// Proves O3
TEST_F(table_relays, a_destination_that_is_down_costs_no_attempt) {
  own->run(status_ddl);
  add("k", "1");
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  table_relay r(*db, destination, status_table("public.outbox"));
  for (int i = 0; i < 20; ++i) {
    run(r);
    time.advance(31s);
  }
  EXPECT_EQ(destination.calls, 20);
  EXPECT_EQ(cell("select status || attempts from outbox"), "PENDING0");
  run(r);
  const int calls = destination.calls;
  run(r);
  EXPECT_EQ(destination.calls, calls) << "it pauses";
  destination.refuse = {};
  time.advance(31s);
  run(r);
  EXPECT_EQ(destination.payloads(), names{"1"});
  EXPECT_EQ(log.count("table_relay_resumed"), 1u);
}

// Proves O3
TEST_F(table_relays, a_clock_that_is_set_back_does_not_prolong_a_pause) {
  own->run(status_ddl);
  add("k", "1");
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  table_relay r(*db, destination, status_table("public.outbox"));
  run(r);
  destination.refuse = {};
  time.advance(-2h);
  EXPECT_LE(r.idle_wait(), 500ms);
  time.advance(31s);
  run(r);
  EXPECT_EQ(destination.payloads(), names{"1"});
}

// Proves O3, O4
TEST_F(table_relays, a_relay_that_was_replaced_marks_nothing) {
  own->run(status_ddl);
  add("k", "1");
  test::recording_publisher heirs;
  table_relay zombie(*db, destination, status_table("public.outbox"), {.lease_ttl = 1s});
  table_relay heir(*db, heirs, status_table("public.outbox"), {.lease_ttl = 1h});
  destination.before_publish = [&] {
    time.advance(10s);
    heirs.refuse = [](const message&) { return publish_result{publish_status::destination_failed, "down"}; };
    run(heir);  // takes over, and cannot publish yet
  };
  zombie.run_once();
  EXPECT_EQ(log.count("table_relay_ownership_lost"), 1u);
  EXPECT_EQ(cell("select status from outbox"), "PENDING") << "it is the heir's to mark";
  heirs.refuse = {};
  time.advance(1min);
  run(zombie);
  EXPECT_EQ(destination.seen.size(), 1u) << "it owns nothing any more";
  run(heir);
  EXPECT_EQ(heirs.payloads(), names{"1"});
  EXPECT_EQ(cell("select status from outbox"), "PUBLISHED");
}

// A relay reads ahead. What it read of shares that it gives to a newcomer is the newcomer's. Proves O3
TEST_F(table_relays, what_was_read_ahead_of_shares_that_are_given_away_is_not_published) {
  own->run(status_ddl);
  for (int i = 0; i < 40; ++i) add(fmt::format("k{}", i % 20), std::to_string(i));
  test::recording_publisher newcomers;
  table_relay first(*db, destination, status_table("public.outbox"), {.batch_max = 20});
  table_relay newcomer(*db, newcomers, status_table("public.outbox"));
  EXPECT_TRUE(first.run_once());
  EXPECT_EQ(destination.seen.size(), 20u);
  newcomer.run_once();
  time.advance(4s);
  destination.before_publish = [&] {  // the first one has just given away a half
    time.advance(1s);
    run(newcomer);
    EXPECT_GT(newcomers.seen.size(), 0u);
  };
  run(first);
  run(newcomer);
  EXPECT_EQ(destination.seen.size() + newcomers.seen.size(), 40u);
}

// A destination that survives its process: each message is a line of a file.
class file_publisher final : public publisher {
 public:
  explicit file_publisher(std::string path) : path_(std::move(path)) {}
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
    std::ofstream file(path_, std::ios::app);
    for (const auto& m : batch) file << m.key << ' ' << m.payload << '\n';
    return std::vector<publish_result>(batch.size());
  }
  names lines() const {
    std::ifstream file(path_);
    names all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

 private:
  std::string path_;
};

// Killed or failing at any point, also between publish and mark: everything is published, each key in order,
// and what comes again comes as a copy. Proves O3, O4, V3
TEST_F(table_relays, survives_a_failure_and_a_kill_at_every_fault_point) {
  const test::temp_dir dir;
  const auto relay_all = [&](fault_points* faults, std::chrono::hours later) {
    testing::manual_time clock(time.now() + later);
    const auto mine =
        postgres::open(own->conninfo(), {.env = {.time = &clock, .log = &log, .faults = faults}});
    file_publisher file(dir.file("published"));
    table_relay r(*mine, file, status_table("public.outbox"), {.batch_max = 2});
    run(r);
    r.leave();
  };
  const auto explored = testing::explore({
      .prepare =
          [&] {
            dir.clear();
            own->run("drop table if exists outbox; delete from settle.shares; delete from settle.members");
            own->run(status_ddl);
            for (int i = 0; i < 5; ++i) add(i % 2 == 0 ? "a" : "b", std::to_string(i));
          },
      .run = [&](fault_points& faults) { relay_all(&faults, 0h); },
      .recover = [&] { relay_all(nullptr, 1h); },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(count("outbox where status = 'PUBLISHED'"), 5) << where;
            names first;
            for (const auto& line : file_publisher(dir.file("published")).lines())
              if (std::ranges::find(first, line) == first.end()) first.push_back(line);
            EXPECT_EQ(first, (names{"a 0", "b 1", "a 2", "b 3", "a 4"})) << where;
          },
  });
  const auto& points = explored.points;
  EXPECT_NE(std::ranges::find(points, "table_relay.publish.after"), points.end());
  EXPECT_NE(std::ranges::find(points, "table_relay.turn.before"), points.end());
}

// A failed mark is repeated: only a crash makes copies.
TEST_F(table_relays, a_mark_that_fails_is_repeated_and_nothing_is_published_twice) {
  own->run(status_ddl);
  add("k", "1");
  table_relay r(*db, destination, status_table("public.outbox"));
  destination.before_publish = [&] {
    own->run("alter table outbox add constraint no check (status <> 'PUBLISHED')");
  };
  EXPECT_EQ(test::code_of([&] { r.run_once(); }), errc::constraint_violated);
  EXPECT_EQ(test::code_of([&] { r.run_once(); }), errc::constraint_violated);
  own->run("alter table outbox drop constraint no");
  run(r);
  EXPECT_EQ(destination.payloads(), names{"1"});
  EXPECT_EQ(cell("select status from outbox"), "PUBLISHED");
}

// Forwards, and counts for one relay.
struct counting_publisher final : publisher {
  explicit counting_publisher(publisher& to) : to(to) {}
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
    ++calls;
    return to.publish(batch);
  }
  publisher& to;
  std::atomic<int> calls = 0;
};

// Eight writers with rollbacks, four relays on connections of their own, two of which come and go. Each key
// has a counter that grows under its row's lock. Proves O3, O4
TEST_F(table_relays, many_relays_and_writers_lose_nothing_and_keep_each_keys_order) {
  own->run(status_ddl);
  own->run("create table counters (key text primary key, n bigint not null default 0)");
  own->run("insert into counters (key) select 'k' || generate_series(0, 19)");
  environment real;
  real.log = &log;
  shared_publisher strict;
  std::list<counting_publisher> counted;
  std::atomic<bool> divided = false, done = false;
  std::vector<std::jthread> relays;
  for (int i = 0; i < 4; ++i)
    relays.emplace_back([&, stays = i < 2, &mine = counted.emplace_back(strict)] {
      const auto their_db = postgres::open(own->conninfo(), {.env = real});
      while (!done) {
        table_relay r(*their_db, mine, status_table("public.outbox"), {.batch_max = 20, .lease_ttl = 3s});
        for (int rounds = 0; !done && (stays || rounds < 100); rounds += divided ? 1 : 0)
          if (!r.run_once()) std::this_thread::sleep_for(1ms);
        r.leave();
      }
    });
  while (count("(select distinct owner from settle.shares where owner is not null) owners") < 4)
    std::this_thread::sleep_for(10ms);
  divided = true;
  {
    const auto writers_db = postgres::open(own->conninfo(), {.env = real});
    std::vector<std::jthread> writers;
    for (unsigned w = 0; w < 8; ++w)
      writers.emplace_back([&, w] {
        std::mt19937 random(w);
        for (int i = 0; i < 100; ++i) {
          auto tx = writers_db->begin();
          const auto key = fmt::format("k{}", random() % 20);
          const auto n = tx.execute("update counters set n = n + 1 where key = $1 returning n", {key});
          tx.execute(
              "insert into outbox (topic, aggregate_id, event_type, payload) values ('t', $1, 'e', $2)",
              {key, std::to_string(n[0][0].integer())});
          if (random() % 10 != 0) tx.commit();
        }
      });
  }
  done = true;
  relays.clear();
  table_relay last(*db, strict, status_table("public.outbox"));
  time.advance(std::chrono::hours(24 * 365 * 10));  // after every lease of the real clock
  run(last);
  std::map<std::string, std::int64_t> reached;
  int copies = 0;
  for (const auto& m : strict.seen) {
    const auto n = std::stoll(m.payload);
    if (n <= reached[m.key])
      ++copies;
    else
      EXPECT_EQ(n, ++reached[m.key]) << m.key;
  }
  const auto rows = db->read().execute("select key, n from counters");
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(reached[rows[i][0].text()], rows[i][1].integer());
  EXPECT_EQ(count("outbox where status <> 'PUBLISHED'"), 0);
  EXPECT_GE(std::ranges::count_if(counted, [](const auto& one) { return one.calls > 0; }), 2);
  if (log.count("table_relay_ownership_lost") == 0) {  // else the machine was too slow for the leases
    EXPECT_EQ(copies, 0);
  }
}

// Proves O3
TEST_F(table_relays, two_relays_divide_the_keys) {
  own->run(status_ddl);
  test::recording_publisher other;
  table_relay first(*db, destination, status_table("public.outbox")),
      second(*db, other, status_table("public.outbox"));
  for (int i = 0; i < 4; ++i) {
    first.run_once();
    second.run_once();
    time.advance(4s);
  }
  for (int i = 0; i < 40; ++i) add(fmt::format("k{}", i % 20), std::to_string(i));
  run(first);
  EXPECT_LT(destination.seen.size(), 40u);
  run(second);
  EXPECT_GT(destination.seen.size(), 0u);
  EXPECT_EQ(destination.seen.size() + other.seen.size(), 40u);
  std::set<std::string> keys;
  for (const auto& m : destination.seen) keys.insert(m.key);
  for (const auto& m : other.seen) EXPECT_FALSE(keys.contains(m.key)) << m.key;
}

}  // namespace
}  // namespace settle
