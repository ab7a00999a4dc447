// Replaying dead letters in batches; on both databases. The consumer is played by the test, at every look.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "dead_letter/shared.hpp"
#include "queries/dead_letter.hpp"
#include "support/dead_letter_world.hpp"
#include "support/expect_error.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using sizes = std::vector<std::size_t>;
using test::code_of;

struct dead_letter_replays : test::dead_letter_world {
  using handler = std::function<bool(const message&)>;  // false: it fails

  static bool works(const message&) { return true; }

  // Delivers what was sent and runs it; remembers how much came at once, and when.
  std::function<void(const replay_progress&)> consumer(handler run) {
    return [this, run](const replay_progress& p) {
      last = p;
      const auto all = deliver();
      if (!all.empty()) came.push_back(all.size());
      for (const auto& m : all) {
        arrivals.push_back(time.now());
        if (run(m))
          took += take(m) ? 1 : 0;
        else
          fail(m, "still broken");
      }
      time.advance(step);
    };
  }

  replay_outcome replay_all(handler run, replay_options options = {}, const dead_letter_filter& which = {}) {
    options.poll = 1ms;
    return replay(*db, which, options, {}, consumer(std::move(run)));
  }

  std::size_t count(dead_letter_status status) {
    return dead_letters(*db, {.status = status}, 10'000).size();
  }

  sizes came;                       // per delivery
  std::vector<timestamp> arrivals;  // per message
  int took = 0;
  duration step{};  // how much time passes with every look
  replay_progress last;
};

// Proves D3
TEST_P(dead_letter_replays, go_through_the_original_topic_addressed_and_with_their_identity) {
  const auto written = letter(placed("42", "payload"));
  const auto id = write(written);
  deliver();
  message seen;
  const auto outcome = replay_all([&](const message& m) {
    seen = m;
    return true;
  });
  EXPECT_EQ(outcome.end, replay_end::done);
  EXPECT_EQ(seen.topic, "orders");
  EXPECT_EQ(seen.id, written.what.id);
  EXPECT_EQ(seen.type, "order.placed");
  EXPECT_EQ(seen.key, "42");
  EXPECT_EQ(seen.subject, "order/42");
  EXPECT_EQ(seen.payload, "payload");
  EXPECT_EQ(replay_address(seen), "warehouse");
  EXPECT_EQ(seen.extensions.at("settlereplayof"), std::to_string(id) + ".1");
  EXPECT_EQ(seen.extensions.at("correlationid"), "c-1");
  EXPECT_EQ(seen.extensions.at("tenant"), "blue");
  EXPECT_NE(seen.extensions.at("sequence"), "7");
  EXPECT_EQ(only_letter().status, dead_letter_status::replayed);
  EXPECT_EQ(only_letter().replays, 1);
}

// Proves D3
TEST_P(dead_letter_replays, come_in_batches_that_grow_and_end_before_the_next) {
  write_many(230);
  const auto outcome = replay_all(works);
  EXPECT_EQ(outcome.end, replay_end::done);
  EXPECT_EQ(came, (sizes{1, 2, 5, 20, 100, 100, 2}));
  EXPECT_EQ(outcome.counts.matching, 230);
  EXPECT_EQ(outcome.counts.sent, 230);
  EXPECT_EQ(outcome.counts.ran, 230);
  EXPECT_EQ(outcome.counts.failed_again, 0);
  EXPECT_EQ(outcome.counts.waiting, 0);
  EXPECT_EQ(took, 230);
  EXPECT_EQ(count(dead_letter_status::replayed), 230u);
  EXPECT_EQ(replay_all(works).counts.matching, 0) << "what has run is not replayed";
}

// Proves D3
TEST_P(dead_letter_replays, stop_when_too_many_of_a_batch_fail_again) {
  write_many(200);
  const auto outcome = replay_all([](const message& m) { return std::stoi(m.key) < 5; });
  EXPECT_EQ(outcome.end, replay_end::too_many_failures);
  EXPECT_EQ(came, (sizes{1, 2, 5}));
  EXPECT_EQ(outcome.counts.ran, 4);
  EXPECT_EQ(outcome.counts.failed_again, 4);
  EXPECT_EQ(count(dead_letter_status::fresh), 196u);
  came.clear();
  EXPECT_EQ(replay_all([](const message&) { return false; }).end, replay_end::too_many_failures);
  EXPECT_EQ(came, sizes{1}) << "the first one that fails costs nobody else anything";
}

TEST_P(dead_letter_replays, go_on_over_as_many_failures_as_allowed_and_meet_none_twice) {
  write_many(30);
  const auto outcome =
      replay_all([](const message& m) { return std::stoi(m.key) % 2 == 0; }, {.failures_max = 1});
  EXPECT_EQ(outcome.end, replay_end::done);
  EXPECT_EQ(outcome.counts.sent, 30);
  EXPECT_EQ(outcome.counts.ran, 15);
  EXPECT_EQ(outcome.counts.failed_again, 15);
  came.clear();
  const auto some = [](const message& m) { return m.key != "7"; };
  EXPECT_EQ(replay_all(some, {.batches = {20}, .failures_max = 0.1}).end, replay_end::done) << "1 of 15";
}

// Proves D3
TEST_P(dead_letter_replays, keep_to_their_rate) {
  write_many(45);
  step = 30ms;
  EXPECT_EQ(replay_all(works, {.rate_max = 10}).end, replay_end::done);
  ASSERT_EQ(arrivals.size(), 45u);
  for (std::size_t i = 10; i < arrivals.size(); ++i)
    EXPECT_GE(arrivals[i] - arrivals[i - 10], 1s - step) << "letters " << i - 10 << " and " << i;
  EXPECT_LE(arrivals.back() - arrivals.front(), 6s) << "nor is it much slower";
}

TEST_P(dead_letter_replays, may_be_slower_than_one_a_second) {
  write_many(3);
  step = 100ms;
  replay_all(works, {.rate_max = 0.5});
  ASSERT_EQ(arrivals.size(), 3u);
  EXPECT_GE(arrivals[2] - arrivals[0], 4s - step);
}

// Proves D3
TEST_P(dead_letter_replays, are_those_that_the_filter_means) {
  auto other = letter(placed("1"));
  other.consumer = "billing";
  other.what.topic = "payments";
  other.what.type = "payment.failed";
  other.what.key = "p";
  other.reason = dead_letter_reason::permanent;
  time.advance(1h);
  other.failed_at = time.now();
  const auto id = write(other);
  write_many(3);
  deliver();
  const auto now = time.now();
  for (const auto& which : std::vector<dead_letter_filter>{
           {.ids = {id}},
           {.ids = {id, id, 999}, .event_id = other.what.id},
           {.event_id = other.what.id},
           {.consumer = "billing"},
           {.topic = "payments"},
           {.type = "payment.failed"},
           {.key = "p"},
           {.reason = dead_letter_reason::permanent},
           {.consumer = "billing", .failed_from = now, .failed_until = now + 1us}}) {
    const auto found = dead_letters(*db, which);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].id, id);
  }
  EXPECT_TRUE(dead_letters(*db, {.ids = {id}, .event_id = "another"}).empty());
  EXPECT_TRUE(dead_letters(*db, {.consumer = "billing", .topic = "orders"}).empty());
  EXPECT_TRUE(dead_letters(*db, {.failed_from = now + 1us}).empty());
  EXPECT_TRUE(dead_letters(*db, {.failed_until = now}).empty());
  const auto outcome = replay_all(works, {}, {.consumer = "billing"});
  EXPECT_EQ(outcome.counts.sent, 1);
  EXPECT_EQ(dead_letters(*db, {.status = dead_letter_status::replayed}).at(0).id, id);
  EXPECT_EQ(count(dead_letter_status::fresh), 3u);
}

TEST_P(dead_letter_replays, are_listed_page_by_page_and_counted_by_group) {
  const auto ids = write_many(5);
  replay_all(works, {}, {.ids = {ids[1]}});
  const auto page = dead_letters(*db, {}, 2, ids[0]);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].id, ids[1]);
  EXPECT_EQ(page[1].id, ids[2]);
  const auto groups = dead_letter_groups(*db);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].status, dead_letter_status::fresh);
  EXPECT_EQ(groups[0].count, 4);
  EXPECT_EQ(groups[0].consumer + groups[0].topic + groups[0].type, "warehouseordersorder.placed");
  EXPECT_EQ(groups[0].oldest, time.now());
  EXPECT_EQ(groups[1].status, dead_letter_status::replayed);
}

// Proves D3
TEST_P(dead_letter_replays, that_nobody_runs_wait_for_their_consumer_and_can_be_asked_for_once_more) {
  const auto ids = write_many(3);
  std::vector<message> first;
  const auto nobody = [&](const replay_progress&) {
    for (auto& m : deliver()) first.push_back(m);
    time.advance(10s);
  };
  const auto outcome = replay(*db, {}, {.poll = 1ms}, {}, nobody);
  EXPECT_EQ(outcome.end, replay_end::timed_out);
  EXPECT_EQ(outcome.counts.sent, 1);
  EXPECT_EQ(outcome.counts.waiting, 1);
  EXPECT_EQ(count(dead_letter_status::replaying), 1u);
  EXPECT_EQ(count(dead_letter_status::fresh), 2u);
  const dead_letter_filter stuck{.status = dead_letter_status::replaying};
  EXPECT_EQ(replay_all(works, {.wait_max = 1h}, stuck).counts.matching, 0) << "it may still be under way";
  EXPECT_EQ(replay_all(works, {}, stuck).counts.ran, 1);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(take(first[0])) << "the copy of the first replay comes too late";
  EXPECT_EQ(dead_letters(*db, {.ids = {ids[0]}}).at(0).replays, 2);
}

// Proves C9, D3
TEST_P(dead_letter_replays, that_are_asked_for_once_more_forget_the_processes_that_ended_before) {
  write_many(1);
  const auto begin = [&](const message& m) {
    auto tx = db->begin();
    const auto begun = note_replay_start(tx, m);
    tx.commit();
    return begun;
  };
  const auto dies = [&](const replay_progress&) {
    for (const auto& m : deliver()) EXPECT_EQ(begin(m), 1);
    time.advance(10s);
  };
  EXPECT_EQ(replay(*db, {}, {.poll = 1ms}, {}, dies).counts.waiting, 1);
  const auto runs = [&](const message& m) { return begin(m) == 1; };
  EXPECT_EQ(replay_all(runs, {}, {.status = dead_letter_status::replaying}).counts.ran, 1);
}

TEST_P(dead_letter_replays, stop_when_told) {
  write_many(3);
  std::stop_source stop;
  const auto outcome =
      replay(*db, {}, {.poll = 1h}, stop.get_token(), [&](const replay_progress&) { stop.request_stop(); });
  EXPECT_EQ(outcome.end, replay_end::stopped);
  EXPECT_EQ(outcome.counts.sent, 1);
  EXPECT_EQ(replay(*db, {}, {}, stop.get_token()).counts.sent, 0);
}

// Proves D3
TEST_P(dead_letter_replays, by_two_operators_at_once_send_every_letter_once) {
  write_many(40);
  replay_outcome outcomes[2];
  std::atomic<int> running = 2;
  {
    std::vector<std::jthread> operators;
    for (auto& mine : outcomes)
      operators.emplace_back([&] {
        mine = replay(*db, {}, {.batches = {3}, .poll = 1ms});
        --running;
      });
    const auto consume = consumer(works);
    while (running > 0) consume({});
  }
  EXPECT_EQ(outcomes[0].counts.sent + outcomes[1].counts.sent, 40);
  EXPECT_EQ(outcomes[0].counts.failed_again + outcomes[1].counts.failed_again, 0);
  EXPECT_EQ(took, 40);
  for (const auto& one : dead_letters(*db)) EXPECT_EQ(one.replays, 1);
}

// Proves D3: at every step of the replaying transaction
TEST_P(dead_letter_replays, lose_and_double_nothing_at_any_fault_point) {
  std::map<std::string, int> ran;  // by message
  const auto run_delivered = [&] {
    for (const auto& m : deliver())
      if (!replay_address(m).empty()) ran[m.id] += take(m) ? 1 : 0;
  };
  const auto explored = testing::explore({
      .prepare =
          [&] {
            write_many(3);
            reopen();  // what was published has left a thread, and the next run forks
          },
      .run =
          [&](fault_points& faults) {
            const auto faulty = open(&faults);
            replay(*faulty, {}, {.batches = {3}, .wait_max = 0s, .poll = 1ms});
          },
      .recover =
          [&] {
            run_delivered();
            // The server may still hold the rows of a session that was killed.
            while (count(dead_letter_status::fresh) > 0)
              replay(*db, {}, {.batches = {3}, .poll = 1ms}, {}, [&](const auto&) { run_delivered(); });
          },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(count(dead_letter_status::fresh) + count(dead_letter_status::replaying), 0u) << where;
            EXPECT_EQ(ran.size(), count(dead_letter_status::replayed)) << where;
            for (const auto& [id, times] : ran) EXPECT_EQ(times, 1) << where;
          },
  });
  EXPECT_TRUE(std::ranges::count(explored.points, "dead_letter.replay.before"));
}

TEST_P(dead_letter_replays, of_messages_that_cannot_be_published_carry_the_address_alone) {
  auto foreign = letter(placed("k", "payload"));
  foreign.what.id = "amq-7";
  foreign.what.key = std::string(2000, 'k');
  foreign.what.extensions["X-Header"] = "1";
  write(foreign);
  auto seen = 0;
  replay_all([&](const message& m) {
    ++seen;
    EXPECT_EQ(m.type, "settle.replay");
    auto tx = db->begin();
    const auto taken = take_replay(tx, m);
    EXPECT_EQ(taken->what.id, "amq-7");
    EXPECT_EQ(taken->what.payload, "payload");
    return true;
  });
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(took, 1);
}

// However many there are, only those with the wanted status are looked at.
TEST_P(dead_letter_replays, are_found_by_an_index) {
  write_many(1);
  auto tx = db->begin();
  const std::string columns =
      "consumer, consumer_version, reason, error, attempts, history, failed_at, blocks_key, topic, "
      "message_key, "
      "log, position, message_id, source, event_type, subject, content_type, event_time, extensions, payload";
  tx.execute(std::string(on_postgres() ? ""
                                       : "with recursive n(i) as (select 1 union all select i + 1 from n "
                                         "where i < 5000) ") +
             "insert into " + table("dlq_events") + " (status, " + columns + ") select 'REPLAYED', " +
             columns + " from " + table("dlq_events") +
             (on_postgres() ? ", generate_series(1, 5000)" : ", n"));
  tx.execute("analyze " + table("dlq_events"));
  const auto& find = queries::dead_letter::find_letters;
  const auto explain =
      (on_postgres() ? "explain " : "explain query plan ") + std::string(find.text(GetParam()));
  const auto max = timestamp::max();
  const auto plan = tx.execute(explain, {"NEW", 0, max, "", "", "", "", "", 0, max, max, "", 10});
  std::string text;
  for (std::size_t i = 0; i < plan.size(); ++i) text += plan[i][on_postgres() ? 0 : 3].text() + "\n";
  EXPECT_NE(text.find("dlq_events_status"), std::string::npos) << text;
  EXPECT_EQ(text.find("B-TREE"), std::string::npos) << "no sorting: " << text;
}

TEST_P(dead_letter_replays, refuse_options_out_of_their_bounds) {
  const auto refusal = [&](const replay_options& options, const dead_letter_filter& which = {}) {
    return code_of([&] { replay(*db, which, options); });
  };
  for (const auto& bad : std::vector<replay_options>{{.batches = {}},
                                                     {.batches = {1, 0}},
                                                     {.batches = {1001}},
                                                     {.rate_max = -1},
                                                     {.failures_max = 1.1},
                                                     {.failures_max = -0.1},
                                                     {.wait_max = -1s},
                                                     {.poll = 0s}})
    EXPECT_EQ(refusal(bad), errc::invalid_argument);
  for (const auto ended :
       {dead_letter_status::replayed, dead_letter_status::discard_requested, dead_letter_status::discarded})
    EXPECT_EQ(refusal({}, {.status = ended}), errc::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(databases, dead_letter_replays,
                         ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
