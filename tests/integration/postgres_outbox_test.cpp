// The outbox on PostgreSQL: nothing is lost, doubled or reordered, whoever commits when.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/testing.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/postgres_outbox_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::postgres_outbox;

using names = std::vector<std::string>;

// Proves O1, O4
TEST_F(postgres_outbox, events_are_published_once_and_in_order) {
  for (int i = 0; i < 25; ++i) emit("k", std::to_string(i));
  relay r(*db, destination, {.batch_max = 10});
  run(r);
  names expected;
  for (int i = 0; i < 25; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(payloads(), expected);
  run(r);
  EXPECT_EQ(destination.seen.size(), 25u);
  EXPECT_EQ(count("settle.outbox_events where status = 'PUBLISHED'"), 25);
  const auto& m = destination.seen[0];
  EXPECT_TRUE(m.source.starts_with("settle:"));
  EXPECT_EQ(m.subject, "k");
  EXPECT_EQ(m.extensions.at("sequence"), "2");
}

// Proves O1
TEST_F(postgres_outbox, nobody_sees_an_event_that_rolled_back) {
  relay r(*db, destination);
  {
    auto tx = db->begin();
    publish(tx, make("k", "never"));
  }
  emit("k", "yes");
  run(r);
  EXPECT_EQ(payloads(), names{"yes"});
}

// Proves O1, O3
TEST_F(postgres_outbox, a_late_commit_is_found_and_delays_nobody) {
  relay r(*db, destination);
  run(r);
  auto slow = db->begin();
  publish(slow, make("slow", "late"));
  slow.execute("select 1");  // sends it
  emit("a", "1");
  run(r);
  emit("b", "2");
  run(r);
  EXPECT_EQ(payloads(), (names{"1", "2"}));
  slow.commit();
  run(r);
  EXPECT_EQ(payloads(), (names{"1", "2", "late"}));
}

// A number is drawn, a tick is taken, the commit comes, and then nothing more happens. Proves O1
TEST_F(postgres_outbox, the_last_commit_before_a_silence_is_found) {
  relay r(*db, destination);
  auto slow = db->begin();
  publish(slow, make("k", "last"));
  slow.execute("select 1");
  run(r);  // the tick has seen the number, not the row
  slow.commit();
  run(r);
  EXPECT_EQ(payloads(), names{"last"});
}

// Proves O1, O4
TEST_F(postgres_outbox, many_late_commits_in_any_order_are_each_found_once) {
  relay r(*db, destination, {.batch_max = 3});
  std::mt19937 random(7);
  std::list<owned_transaction> open;
  for (int i = 0; i < 120; ++i) {
    if (open.size() < 8) {
      open.push_back(db->begin());
      publish(open.back(), make(fmt::format("k{}", i), std::to_string(i)));
      open.back().execute("select 1");
    }
    if (open.size() == 8 || random() % 3 == 0) {
      const auto which = std::next(open.begin(), static_cast<std::ptrdiff_t>(random() % open.size()));
      if (random() % 5 != 0) which->commit();
      open.erase(which);  // rolls back what is not committed
    }
    if (random() % 2 == 0) r.run_once();
  }
  for (auto& one : open) one.commit();
  run(r);
  auto seen = payloads();
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end()) << "each once";
  const auto rows = db->read().execute("select convert_from(payload, 'UTF8') from settle.outbox");
  names stored;
  for (std::size_t i = 0; i < rows.size(); ++i) stored.push_back(rows[i][0].text());
  std::ranges::sort(stored);
  EXPECT_EQ(seen, stored);
}

// Proves O3
TEST_F(postgres_outbox, a_window_larger_than_a_batch_is_paged_while_commits_arrive) {
  {
    auto tx = db->begin();
    for (int i = 0; i < 250; ++i) publish(tx, make(fmt::format("k{}", i % 7), std::to_string(i)));
    tx.commit();
  }
  relay r(*db, destination, {.batch_max = 20});
  for (int i = 0; r.run_once(); ++i)
    if (i < 10) emit("k1", fmt::format("more {}", i));
  EXPECT_EQ(destination.seen.size(), 260u);
  std::map<std::string, std::int64_t> last;
  for (const auto& m : destination.seen) {
    const auto number = std::stoll(m.extensions.at("sequence"));
    EXPECT_GT(number, last[m.key]);
    last[m.key] = number;
  }
}

// Proves O1
TEST_F(postgres_outbox, savepoints_and_prepared_transactions_are_like_any_other) {
  relay r(*db, destination);
  own->run(
      "begin; select settle.publish('t', 'e', 'k', 'kept'::text); savepoint s; "
      "select settle.publish('t', 'e', 'k', 'undone'::text); rollback to s; "
      "select settle.publish('t', 'e', 'k', 'after'::text); prepare transaction '" +
      own->name() + "'");
  emit("a", "1");
  run(r);
  EXPECT_EQ(payloads(), names{"1"});
  own->run("commit prepared '" + own->name() + "'");
  run(r);
  EXPECT_EQ(payloads(), (names{"1", "kept", "after"}));
}

// A dump restored into a younger cluster: new transactions have ids that the old ticks would show. Proves O12
TEST_F(postgres_outbox, a_rebase_keeps_what_was_published_after_the_restore) {
  relay before(*db, destination);
  emit("k", "published");
  run(before);
  emit("k", "pending");
  own->run(
      "update settle.outbox_ticks set snap = (select format('%s:%s:', x, x)::pg_snapshot from "
      "(select pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000 as x) ahead)");
  own->run("update settle.identity set system_identifier = system_identifier + 1");
  emit("k", "after the restore");
  EXPECT_EQ(own->run("select settle.rebase_outbox()"), "2");
  relay heir(*db, destination);
  time.advance(1h);
  run(heir);
  EXPECT_EQ(payloads(), (names{"published", "pending", "after the restore"}));
}

// Proves O13
TEST_F(postgres_outbox, other_languages_delay_an_event) {
  const auto at = std::to_string((time.now() + 1h).time_since_epoch() / 1s);
  own->run("select settle.publish('t', 'e', 'k', 'by function'::bytea, deliver_at => to_timestamp(" + at +
           "))");
  own->run(
      "insert into settle.outbox_events (topic, aggregate_id, event_type, payload, deliver_at) "
      "values ('t', 'k', 'e', 'through the view', to_timestamp(" +
      at + "))");
  relay r(*db, destination);
  run(r);
  EXPECT_TRUE(destination.seen.empty());
  EXPECT_EQ(count("settle.outbox_events where status = 'PENDING'"), 2);
  time.advance(1h);
  run(r);
  EXPECT_EQ(payloads(), (names{"by function", "through the view"}));
}

TEST_F(postgres_outbox, a_rebase_refuses_to_work_on_an_old_view_of_the_table) {
  EXPECT_THROW(own->run("begin isolation level repeatable read; select settle.rebase_outbox(); commit"),
               std::runtime_error);
  EXPECT_EQ(own->run("select settle.rebase_outbox()"), "0");
}

// A rolling upgrade: the next version adds columns while this one relays and publishes. Proves O12
TEST_F(postgres_outbox, running_programs_go_on_while_a_newer_version_migrates) {
  relay r(*db, destination);
  emit("k", "before");
  run(r);
  own->run(
      "alter table settle.outbox add column future text; alter table settle.outbox_ticks add column future "
      "text; "
      "alter table settle.outbox_held add column future text; alter table settle.shares add column future "
      "text; "
      "insert into settle.migrations (number, name, checksum, applied_at) select max(number) + 1, 'future', "
      "'x', 0 "
      "from settle.migrations");
  destination.refuse = [](const message& m) {
    return publish_result{m.payload == "bad" ? publish_status::message_rejected : publish_status::confirmed,
                          "no"};
  };
  emit("other", "bad");
  emit("k", "after");
  for (int i = 0; i < 10; ++i) {
    run(r);
    time.advance(5s);
  }
  relay second(*db, destination);
  emit("k", "last");
  for (int i = 0; i < 3; ++i) {
    run(r);
    run(second);
    time.advance(5s);
  }
  EXPECT_EQ(payloads(), (names{"before", "after", "last"}));
  EXPECT_EQ(count("settle.outbox_events where status = 'FAILED'"), 1);
  EXPECT_EQ(test::code_of([&] { migrate(*db); }), errc::schema_newer) << "who starts anew is told";
}

// Proves O3: programs that publish with SQL alone announce nothing
TEST_F(postgres_outbox, while_events_flow_the_relay_looks_for_more_of_them_often) {
  relay r(*db, destination);
  time.advance(1h);
  run(r);
  EXPECT_EQ(r.idle_wait(), 500ms) << "nothing has ever come";
  emit("k", "1");
  run(r);
  EXPECT_EQ(r.idle_wait(), 2ms);
  time.advance(400ms);
  EXPECT_EQ(r.idle_wait(), 100ms);
  time.advance(1min);
  EXPECT_EQ(r.idle_wait(), 500ms);
}

// Proves O4
TEST_F(postgres_outbox, strict_publishers_of_one_key_go_one_after_the_other) {
  auto first = db->begin();
  publish(first, make("k", "first"), {.order = publish_order::strict});
  first.execute("select 1");  // sends it
  std::atomic<bool> second_done = false;
  std::jthread other([&] {
    auto second = db->begin();
    publish(second, make("k", "second"), {.order = publish_order::strict});
    second.commit();
    second_done = true;
  });
  auto stranger = db->begin();
  publish(stranger, make("another key", "stranger"), {.order = publish_order::strict});
  stranger.commit();
  const std::string waiting =
      "pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database "
      "where "
      "datname = current_database())";
  while (count(waiting) == 0) std::this_thread::yield();
  EXPECT_FALSE(second_done) << "it waits for the first to end";
  first.commit();
  other.join();
  relay r(*db, destination, {.batch_max = 1});
  run(r);
  EXPECT_EQ(payloads(), (names{"first", "stranger", "second"}));
  auto tx = db->begin();
  EXPECT_THROW(publish(tx, make("", "x"), {.order = publish_order::strict}), error);
}

// Proves O3
TEST_F(postgres_outbox, a_relay_that_was_replaced_cannot_note_progress) {
  relay zombie(*db, destination, {.lease_ttl = 1s});
  emit("k", "1");
  run(zombie);
  time.advance(10s);
  relay heir(*db, destination, {.lease_ttl = 1h});
  run(heir);
  emit("k", "2");
  const auto before = count("settle.outbox_progress");
  run(heir);
  EXPECT_EQ(payloads(), (names{"1", "2"}));
  const auto after = count("settle.outbox_progress");
  EXPECT_GT(after, before);
  time.advance(-10s);  // the zombie believes its lease
  emit("k", "3");
  for (int i = 0; i < 10 && log.count("relay_ownership_lost") == 0; ++i) zombie.run_once();
  EXPECT_EQ(count("settle.outbox_progress"), after);
  EXPECT_GE(log.count("relay_ownership_lost"), 1u);
}

// Proves O3, O4
TEST_F(postgres_outbox, two_relays_share_the_keys) {
  relay first(*db, destination), second(*db, destination);
  for (int i = 0; i < 4; ++i) {
    first.run_once();
    second.run_once();
    time.advance(4s);
  }
  EXPECT_EQ(db->read().execute("select count(distinct owner) from settle.shares")[0][0].integer(), 2);
  for (int i = 0; i < 60; ++i) emit(fmt::format("k{}", i % 10), std::to_string(i));
  for (int i = 0; i < 5; ++i) {
    run(first);
    run(second);
  }
  std::map<std::string, int> last;
  for (const auto& m : destination.seen) {
    EXPECT_GE(std::stoi(m.payload), last[m.key]);
    last[m.key] = std::stoi(m.payload);
  }
  EXPECT_EQ(destination.seen.size(), 60u);
}

// Proves O9, O1
TEST_F(postgres_outbox, the_ring_empties_only_what_is_old_and_done) {
  relay r(*db, destination, {.outbox_keep = 1h, .natural_key_keep = 1h});
  emit("k", "1");
  run(r);
  auto slow = db->begin();  // writes to the first leaf, and keeps it
  publish(slow, make("slow", "late"));
  slow.execute("select 1");
  for (int i = 0; i < 12; ++i) {
    emit("k", "more");
    time.advance(15min);
    run(r);
  }
  EXPECT_GE(log.count("outbox_ring_turned"), 2u);
  EXPECT_EQ(count("settle.outbox where aggregate_id = 'k' and convert_from(payload, 'UTF8') = '1'"), 1)
      << "its leaf is in use";
  slow.commit();
  for (int i = 0; i < 12; ++i) {
    time.advance(15min);
    run(r);
  }
  EXPECT_EQ(std::ranges::count(payloads(), "late"), 1);
  EXPECT_EQ(count("settle.outbox"), 0);
  EXPECT_EQ(destination.seen.size(), 14u);
  EXPECT_LT(count("settle.outbox_ticks"), 30);
}

// Proves O9, O1
TEST_F(postgres_outbox, what_is_not_published_stays_however_old_it_is) {
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  relay r(*db, destination, {.outbox_keep = 1h, .natural_key_keep = 1h});
  emit("k", "1");
  for (int i = 0; i < 24; ++i) {
    time.advance(1h);
    run(r);
  }
  EXPECT_EQ(count("settle.outbox"), 1);
  destination.refuse = {};
  destination.seen.clear();
  time.advance(1h);
  run(r);
  EXPECT_EQ(payloads(), names{"1"});
}

// Proves O2
TEST_F(postgres_outbox, other_languages_publish_with_a_function_or_through_the_view) {
  own->run(R"(select settle.publish('orders', 'order.placed', '42', '{"total": 1}'::jsonb))");
  own->run(
      "insert into settle.outbox_events (topic, aggregate_type, aggregate_id, event_type, payload) "
      "values ('orders', 'order', '43', 'order.placed', 'x')");
  relay r(*db, destination);
  run(r);
  ASSERT_EQ(destination.seen.size(), 2u);
  EXPECT_EQ(destination.seen[0].payload, R"({"total": 1})");
  EXPECT_EQ(destination.seen[0].key, "42");
  EXPECT_EQ(destination.seen[1].subject, "order/43");
}

// Proves O2
TEST_F(postgres_outbox, the_publishers_role_writes_nothing_that_relays_rely_on) {
  const auto as_publisher = [&](const std::string& sql) {
    own->run("begin; set local role settle_publisher; " + sql + "; commit");
  };
  EXPECT_NO_THROW(as_publisher("select settle.publish('t', 'e', 'k', 'x'::text)"));
  EXPECT_NO_THROW(
      as_publisher("insert into settle.outbox (topic, event_type, payload) values ('t', 'e', 'x')"));
  for (const auto* column : {"xid", "seq", "lane", "slot"})
    EXPECT_ANY_THROW(as_publisher(fmt::format(
        "insert into settle.outbox (topic, event_type, payload, {}) values ('t', 'e', 'x', '1')", column)))
        << column;
  EXPECT_ANY_THROW(as_publisher("select nextval('settle.outbox_ring')"));
  EXPECT_ANY_THROW(as_publisher("delete from settle.outbox"));
  EXPECT_ANY_THROW(as_publisher("update settle.outbox_ticks set n = 1"));
}

// Proves O2
// Order per key hangs on the lane, and what cannot be read back would block its share. Proves O2, O4
TEST_F(postgres_outbox, whoever_inserts_a_row_its_lane_is_its_keys_and_it_can_be_read) {
  own->run(
      "create schema evil; create function evil.get_byte(bytea, integer) returns integer language sql as "
      "$$ select 7 $$; create function evil.texteq(text, text) returns boolean language sql as "
      "$$ select false $$");
  const auto insert = [&](const std::string& row) {
    auto tx = db->begin();
    tx.execute("set local search_path = evil, pg_catalog");
    tx.execute(
        "insert into settle.outbox (topic, event_type, aggregate_id, lane, headers, payload) values (" + row +
        ")");
    tx.commit();
  };
  using test::code_of;
  EXPECT_EQ(code_of([&] { insert("'', 'e', 'k', 1, '', ''"); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { insert("'t', '', 'k', 1, '', ''"); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { insert("'t', 'e', 'k', 1, '[1]', ''"); }), errc::constraint_violated);
  EXPECT_NE(code_of([&] { insert("'t', 'e', 'k', 1, 'no JSON', ''"); }), std::nullopt);
  EXPECT_EQ(count("settle.outbox"), 0);
  insert("'t', 'e', 'k', 999, '{\"a\":\"b\"}', 'mine'");
  insert("'t', 'e', '', null, '', 'without a key'");
  EXPECT_EQ(
      count("settle.outbox where lane = settle.lane(case when aggregate_id = '' then event_id::text else "
            "aggregate_id end)"),
      2);
  relay r(*db, destination);
  run(r);
  EXPECT_EQ(destination.seen.size(), 2u);
}

TEST_F(postgres_outbox, a_search_path_cannot_redirect_the_publish_function) {
  own->run(
      "create schema evil; create function evil.convert_to(text, name) returns bytea language sql as "
      "$$ select 'stolen'::bytea $$; create table evil.outbox (like settle.outbox)");
  own->run(
      "begin; set local search_path = evil, settle, pg_catalog; "
      "select settle.publish('t', 'e', 'k', 'mine'::text); commit");
  relay r(*db, destination);
  run(r);
  EXPECT_EQ(payloads(), names{"mine"});
}

// Proves O5
TEST_F(postgres_outbox, a_natural_key_is_published_once) {
  const auto emit_once = [&] {
    auto tx = db->begin();
    const auto result = publish_once(tx, make("order-1", "x"));
    tx.commit();
    return result.skipped;
  };
  EXPECT_FALSE(emit_once());
  EXPECT_TRUE(emit_once());
  EXPECT_EQ(count("settle.outbox"), 1);
}

// Proves O12
TEST_F(postgres_outbox, on_another_cluster_relaying_stops_until_the_outbox_is_rebased) {
  relay before(*db, destination);
  emit("k", "1");
  run(before);
  before.leave();
  emit("k", "2");
  emit("k", "3");
  own->run("update settle.identity set timeline = timeline + 1");  // as after a restore into this cluster
  relay r(*db, destination);
  EXPECT_THROW(
      {
        try {
          r.run_once();
        } catch (const error& e) {
          EXPECT_EQ(e.code(), errc::cluster_changed);
          throw;
        }
      },
      error);
  EXPECT_EQ(payloads(), names{"1"});
  emit("k", "4");  // publishing goes on
  {
    auto tx = db->begin();
    tx.execute("select pg_current_xact_id()");
    own->run("create table other ()");  // somebody with a higher transaction id ends before it
    EXPECT_EQ(tx.execute("select settle.rebase_outbox()")[0][0].integer(), 3);
    tx.commit();
  }
  emit("k", "5");
  time.advance(1min);
  run(r);
  EXPECT_EQ(payloads(), (names{"1", "2", "3", "4", "5"}));
  EXPECT_GT(std::stoll(destination.seen[1].extensions.at("sequence")), 1'000'000)
      << "above all numbers that were used before";
}

// Eight writers, one long transaction, rollbacks, and a relay that reads all the while. Each key has a
// counter that grows under its row's lock. Proves O1, O3, O4
TEST_F(postgres_outbox, under_load_every_key_arrives_complete_and_in_order) {
  own->run("create table counters (key text primary key, n bigint not null default 0)");
  own->run("insert into counters (key) select 'k' || generate_series(0, 9)");
  environment real;
  real.log = &log;
  const auto writers_db = postgres::open(own->conninfo(), {.env = real});
  auto sleeper = writers_db->begin();
  publish(sleeper, make("sleeper", "1"));
  sleeper.execute("select 1");
  std::atomic<bool> done = false;
  std::jthread relaying([&] {
    const auto relay_db = postgres::open(own->conninfo(), {.env = real});
    relay r(*relay_db, destination, {.batch_max = 50});
    while (!done) r.run_once();
    run(r);
    r.leave();
  });
  {
    std::vector<std::jthread> writers;
    for (unsigned w = 0; w < 8; ++w)
      writers.emplace_back([&, w] {
        std::mt19937 random(w);
        for (int i = 0; i < 150; ++i) {
          auto tx = writers_db->begin();
          if (random() % 2 == 0) tx.execute("select pg_current_xact_id()");  // before the key's lock
          const auto key = fmt::format("k{}", random() % 10);
          const auto n = tx.execute("update counters set n = n + 1 where key = $1 returning n", {key});
          publish(tx, make(key, std::to_string(n[0][0].integer())));
          if (random() % 10 != 0) tx.commit();
        }
      });
  }
  sleeper.commit();
  done = true;
  relaying.join();
  std::map<std::string, std::int64_t> last;
  for (const auto& m : destination.seen) EXPECT_EQ(std::stoll(m.payload), ++last[m.key]) << m.key;
  const auto rows = db->read().execute("select key, n from counters");
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(last[rows[i][0].text()], rows[i][1].integer());
  EXPECT_EQ(last["sleeper"], 1);
}

}  // namespace
}  // namespace settle
