// What a consumer does after a crash, and what becomes of replays, on both databases.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <utility>

#include "settle/testing.hpp"
#include "support/child_process.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct failure_recovery : test::failing_consumer {
  void deliver_killer() {
    for (const auto* id : {"1", "killer", "3"}) deliver(id, id);
  }

  // A consumer in a process of its own, which dies over one message. Its exit code, or minus the signal.
  int run_process(const std::function<void()>& die) {
    broker.partition = "things/0";
    db.reset();  // with its threads: a fork takes none along
    test::child_process child([&] {
      open();
      consumer c(*db, broker, plain());
      c.on("things", "thing.done", [&](const message& m, transaction& tx) {
        tx.execute("insert into things_done (what) values ($1)", {m.id});
        if (m.id == "killer") die();
      });
      drain_for(c, 12s);
      return 0;
    });
    const auto code = child.wait();
    open();
    time.advance(12s);
    return code;
  }

  // The others are applied, each once.
  void expect_given_up() {
    const auto done = effects();
    EXPECT_EQ(std::set(done.begin(), done.end()), (std::set<std::string>{"1", "3"}));
    EXPECT_EQ(done.size(), 2u);
    const auto letters = dead_letters(*db);
    ASSERT_EQ(letters.size(), 1u);
    EXPECT_EQ(letters[0].reason, dead_letter_reason::crashed_process);
    EXPECT_EQ(letters[0].what.id, "killer");
  }
};

// Under a sanitizer the limit on memory is the sanitizer's own affair, and a bad access ends in its report.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

void write_to_nowhere() {
  volatile auto nowhere = std::uintptr_t{8};
  *reinterpret_cast<volatile int*>(nowhere) = 1;  // NOLINT
}

// There is room for a little more than the process has, and nobody is prepared for bad_alloc.
void run_out_of_memory() noexcept {
  if (sanitized) std::abort();
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto room = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
  const rlimit limit{room, room};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(98);
  std::vector<std::string> all;
  while (true) all.emplace_back(std::size_t{1} << 20, 'x');
}

// Proves C9
TEST_P(failure_recovery, a_message_over_which_three_processes_die_is_a_dead_letter_and_the_rest_goes_on) {
  deliver_killer();
  EXPECT_EQ(run_process([] { ::raise(SIGABRT); }), -SIGABRT);
  EXPECT_EQ(run_process([] { ::raise(SIGKILL); }), -SIGKILL);
  EXPECT_EQ(run_process([] { ::raise(SIGABRT); }), -SIGABRT);
  EXPECT_EQ(run_process([] { ::raise(SIGKILL); }), 0) << "three have died";
  expect_given_up();
}

// Proves C9
TEST_P(failure_recovery, a_bad_access_and_a_lack_of_memory_are_crashes_like_any_other) {
  deliver_killer();
  const auto died = [&](void (*how)(), int by) {
    const auto code = run_process(how);
    if (sanitized)
      EXPECT_NE(code, 0);
    else
      EXPECT_EQ(code, -by);
  };
  died(write_to_nowhere, SIGSEGV);
  died(run_out_of_memory, SIGABRT);
  died(write_to_nowhere, SIGSEGV);
  EXPECT_EQ(run_process(run_out_of_memory), 0) << "three have died";
  expect_given_up();
}

// Runs something when the handler's failure is logged: the attempt has rolled back, and is not written down
// yet.
struct log_with_a_hook final : log_sink {
  bool enabled(log_level) const override { return true; }
  void write(log_level, std::string_view event, std::initializer_list<log_field>) override {
    if (event == "handler_failed" && on_failure) std::exchange(on_failure, {})();
  }
  std::function<void()> on_failure;
};

// One process has failed with a message and sleeps; another one takes the message over and succeeds. What the
// first one wakes up to write must not become a dead letter: its replay would run a second time. Proves C8,
// D1
TEST_P(failure_recovery, a_charge_that_comes_too_late_is_dropped) {
  deliver("1", "a");
  deliver("2", "a");
  auto options = plain();
  options.attempts_max = 2;
  log_with_a_hook hooked;
  const environment env{.time = &time, .log = &hooked, .counters = &counters};
  const auto own_db = GetParam() == dialect::postgres ? postgres::open(own->conninfo(), {.env = env})
                                                      : sqlite::open(dir.file("service.db"), {.env = env});
  consumer sleepy(*own_db, broker, options);
  sleepy.on("things", "thing.done", [](const message&, transaction&) { throw std::runtime_error("no"); });
  drain(sleepy);
  ASSERT_EQ(count("parked_messages"), 2);
  test::list_broker nothing;
  consumer other(*db, nothing, options);
  other.on("things", "thing.done", [](const message& m, transaction& tx) {
    tx.execute("insert into things_done (what) values ($1)", {m.id});
    if (m.id == "2") throw handler_failed(failure_class::transient, "so that its key stays");
  });
  time.advance(1s);
  hooked.on_failure = [&] {
    time.advance(10s);
    drain(other);
  };
  drain(sleepy);
  EXPECT_EQ(effects(), names{"1"});
  EXPECT_TRUE(dead_letters(*db).empty());
  EXPECT_EQ(sleepy.counts().dead_letters, 0);
  EXPECT_EQ(count("parked_messages"), 1) << "the one behind it waits for its own time";
}

// Proves C9
TEST_P(failure_recovery, slow_retries_are_not_taken_for_crashes) {
  for (int i = 0; i < 20; ++i) {
    deliver(std::to_string(i), std::to_string(i));
    failing[std::to_string(i)] = failure_class::poison;
  }
  auto first = make_consumer();
  drain(*first);
  ASSERT_EQ(count("parked_messages"), 20);
  failing.clear();
  time.advance(1s);
  consumer slow(*db, broker, plain());
  int ran = 0;
  slow.on("things", "thing.done", [&](const message&, transaction&) {
    ++ran;
    time.advance(3s);
  });
  slow.run_once();
  EXPECT_LE(ran, 2) << "the others would look abandoned by now";
  EXPECT_EQ(number("select count(*) from " + table("parked_messages") + " where starts > 0"), 0);
  drain(slow);
  EXPECT_EQ(count("parked_messages"), 0);
  EXPECT_TRUE(dead_letters(*db).empty());
}

struct faults_with_a_hook final : fault_points {
  void reached(std::string_view point) override {
    if (point == "consumer.announce.after" && on_announced) std::exchange(on_announced, {})();
    if (point == "consumer.commit.after" && on_committed) std::exchange(on_committed, {})();
  }
  std::function<void()> on_announced, on_committed;
};

// A consumer on PostgreSQL whose parked messages another process gets hold of: SQLite has one writer.
struct beside_another_process : failure_recovery {
  void SetUp() override {
    failure_recovery::SetUp();
    if (IsSkipped()) return;
    const environment env{.time = &time, .log = &hooked, .counters = &counters, .faults = &faults};
    own_db = postgres::open(own->conninfo(), {.env = env, .busy_timeout = 300ms});
    c = std::make_unique<consumer>(*own_db, broker, plain());
    c->on("things", "thing.done", [this](const message& m, transaction& tx) {
      tx.execute("insert into things_done (what) values ($1)", {m.id});
      if (!works) throw std::runtime_error("no");
    });
  }

  // The key's row, as one has it who works on it, or adds to it.
  void take_the_key(const std::string& key) {
    other.emplace(db->begin());
    other->execute("select 1 from settle.parked_keys where message_key = $1 for update", {key});
  }

  bool works = false;
  faults_with_a_hook faults;
  log_with_a_hook hooked;
  std::unique_ptr<database> own_db;
  std::unique_ptr<consumer> c;
  std::optional<owned_transaction> other;
};

// It gets new messages of the key all the time, and has its row whenever this one wants it: to run the
// message, or to write down that it has failed. Proves C9
TEST_P(beside_another_process, a_message_that_cannot_be_had_is_not_taken_for_a_crash) {
  deliver("1", "a");
  drain(*c);
  ASSERT_EQ(count("parked_messages"), 1);
  for (int round = 0; round < 10; ++round) {
    (round < 5 ? faults.on_announced : hooked.on_failure) = [&] { take_the_key("a"); };
    time.advance(10s);
    c->run_once();
    ASSERT_TRUE(other) << round;
    other.reset();
  }
  EXPECT_TRUE(dead_letters(*db).empty());
  works = true;
  drain_for(*c, 20s);
  EXPECT_EQ(effects(), names{"1"});
  EXPECT_EQ(count("parked_messages"), 0);
}

// It has the key when the first message is to run, and has it no longer when the second is. Proves C8
TEST_P(beside_another_process, nothing_gets_past_a_message_of_its_key_that_cannot_be_had) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, "a");
  drain(*c);
  ASSERT_EQ(count("parked_messages"), 3);
  works = true;
  time.advance(1s);
  faults.on_announced = [&] {
    take_the_key("a");
    faults.on_committed = [&] { other.reset(); };
  };
  drain_for(*c, 20s);
  EXPECT_FALSE(other);
  EXPECT_EQ(effects(), (names{"1", "2", "3"}));
}

// What it runs is not waited for, to take an old mark of it back. Proves C8, C9
TEST_P(beside_another_process, a_message_that_it_runs_holds_up_no_other_key) {
  for (const auto* id : {"1", "2"}) deliver(id, id);
  drain(*c);
  ASSERT_EQ(count("parked_messages"), 2);
  time.advance(1s);
  faults.on_announced = [&] {
    take_the_key("1");
    other->execute("delete from settle.parked_messages where message_key = '1'");
  };
  works = true;
  c->run_once();
  ASSERT_TRUE(other);
  works = false;
  deliver("3", "3");
  drain(*c);
  works = true;
  drain_for(*c, 10s);
  EXPECT_EQ(effects(), (names{"2", "3"}));
  other->commit();
}

INSTANTIATE_TEST_SUITE_P(databases, beside_another_process, ::testing::Values(dialect::postgres),
                         [](const auto&) { return "postgres"; });

// Proves C9, D3
TEST_P(failure_recovery, a_replay_over_which_three_processes_die_is_a_dead_letter_again) {
  deliver("killer", "killer");
  refusing["killer"] = failure_class::permanent;
  {
    auto c = make_consumer();
    drain(*c);
  }
  broker.messages = {replay_message(1)};
  deliver("2", "b");
  const auto letter = [&] { return dead_letters(*db).at(0); };
  for (int process = 0; process < 3; ++process) {
    EXPECT_EQ(run_process([] { ::raise(SIGKILL); }), -SIGKILL);
    EXPECT_EQ(letter().status, dead_letter_status::replaying);
  }
  EXPECT_EQ(run_process([] { ::raise(SIGKILL); }), 0) << "three have died";
  EXPECT_EQ(letter().status, dead_letter_status::fresh);
  EXPECT_EQ(letter().error, "3 processes ended while it ran");
  EXPECT_EQ(effects(), names{"2"});
  broker.messages = {replay_message(2)};
  EXPECT_EQ(run_process([] {}), 0) << "mended";
  EXPECT_EQ(letter().status, dead_letter_status::replayed);
  EXPECT_EQ(effects(), (names{"2", "killer"}));
}

// By one who has taken over from a process that did not end its work. Proves C9, D3, V3
TEST_P(failure_recovery, a_replay_that_is_begun_with_care_runs_once_at_every_fault_point) {
  deliver("1", "1");
  refusing["1"] = failure_class::permanent;
  {
    auto c = make_consumer();
    drain(*c);
  }
  broker.messages = {replay_message(1)};
  refusing.clear();
  const auto run = [&](fault_points* faults) {
    const environment env{.time = &time, .log = &log, .counters = &counters, .faults = faults};
    const auto opened = GetParam() == dialect::postgres ? postgres::open(own->conninfo(), {.env = env})
                                                        : sqlite::open(dir.file("service.db"), {.env = env});
    consumer c(*opened, broker, plain());
    c.on("things", "thing.done", [](const message& m, transaction& tx) {
      tx.execute("insert into things_done (what) values ($1)", {m.id});
    });
    drain(c);
    c.leave();
  };
  const auto explored = testing::explore({
      .prepare =
          [&] {
            auto tx = db->begin();
            tx.execute("delete from " + table("consumer_fences"));
            tx.execute("insert into " + table("consumer_fences") +
                       " (consumer, partition, epoch, at_work) values ('tester', 'things/0', 1, " +
                       (GetParam() == dialect::postgres ? "true)" : "1)"));
            tx.execute("update " + table("dlq_events") +
                       " set status = 'REPLAYING', starts = 0, history = '[]'");
            tx.execute("delete from things_done");
            tx.commit();
            db.reset();  // with its threads: a fork takes none along
          },
      .run =
          [&](fault_points& faults) {
            broker.partition = "things/0";
            run(&faults);
          },
      .recover =
          [&] {
            broker.partition = "things/0";
            run(nullptr);
          },
      .check =
          [&](const std::string& where) {
            open();
            EXPECT_EQ(effects(), names{"1"}) << where;
            EXPECT_EQ(dead_letters(*db).at(0).status, dead_letter_status::replayed) << where;
          },
  });
  EXPECT_EQ(std::ranges::count(explored.points, "consumer.note_replay.before"), 1);
}

// Proves C9
TEST_P(failure_recovery, a_replay_that_is_done_makes_nobody_careless_of_what_comes_behind_it) {
  deliver("0", "0");
  refusing["0"] = failure_class::permanent;
  auto c = make_consumer();
  drain(*c);
  broker.messages.push_back(replay_message(1));
  refusing.clear();
  drain(*c);
  ASSERT_EQ(effects(), names{"0"});
  c.reset();
  deliver_killer();  // the replay is delivered again before it
  for (int process = 0; process < 3; ++process)
    EXPECT_EQ(run_process([] { ::raise(SIGKILL); }), -SIGKILL) << process;
  EXPECT_EQ(run_process([] { ::raise(SIGKILL); }), 0) << "three have died";
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_EQ(letters[1].reason, dead_letter_reason::crashed_process);
  EXPECT_EQ(effects().size(), 3u);
}

// Proves C9
TEST_P(failure_recovery, an_owner_that_left_in_good_order_makes_nobody_careful) {
  deliver("1", "a");
  broker.partition = "things/0";
  {
    auto c = make_consumer();
    drain(*c);
    c->leave();
  }
  deliver("2", "b");
  broker.partition = "things/0";
  auto next = make_consumer();
  drain(*next);
  EXPECT_EQ(next->counts().parked, 0);
  EXPECT_EQ(log.count("cautious_mode"), 0u);
  EXPECT_EQ(effects(), (names{"1", "2"}));
}

// Proves D3
TEST_P(failure_recovery, a_replay_runs_once_and_unblocks_its_key) {
  for (const auto* id : {"1", "2"}) deliver(id, "a");
  failing["1"] = failure_class::permanent;
  auto options = plain();
  options.on_exhausted = on_exhausted::block_key;
  auto c = make_consumer(options);
  drain(*c);
  EXPECT_TRUE(effects().empty());
  const auto replayed = replay_message(1);
  broker.messages.push_back(replayed);
  drain(*c);
  EXPECT_TRUE(effects().empty()) << "it fails again";
  EXPECT_EQ(dead_letters(*db)[0].status, dead_letter_status::fresh);
  EXPECT_EQ(dead_letters(*db)[0].attempts, 2);
  failing.clear();
  broker.messages.push_back(replay_message(2));
  broker.messages.push_back(replay_message(2));  // delivered twice
  broker.messages.push_back(replayed);           // and a copy of the first one
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "2"}));
  EXPECT_EQ(c->counts().replays, 1);
  EXPECT_EQ(dead_letters(*db)[0].status, dead_letter_status::replayed);
  EXPECT_EQ(count("parked_keys"), 0);
}

// Proves D3
TEST_P(failure_recovery, a_replay_for_another_consumer_is_skipped_and_counted) {
  deliver("1", "a");
  auto c = make_consumer();
  drain(*c);
  auto other = broker.messages[0];
  other.extensions["settlereplayfor"] = "somebody";
  other.extensions["settlereplayof"] = "1.1";
  broker.messages.push_back(other);
  drain(*c);
  EXPECT_EQ(effects(), names{"1"});
  EXPECT_EQ(c->counts().others_replays, 1);
  EXPECT_EQ(broker.acknowledged.size(), 2u);
}

// Two of one key, of which the first fails for a while; one that never works; and a good one. Then two and
// one that fail in the same ways, but before they have asked the database for anything; and two and one that
// fail when they have only posted. They are delivered again from the beginning after the failure, or the
// kill.
struct failing_world {
  failing_world(const std::function<std::unique_ptr<database>(const environment&)>& open,
                fault_points* faults, duration later) {
    time.advance(later);
    db = open({.time = &time, .log = &log, .counters = &counters, .faults = faults});
    for (const auto& [id, key] : {std::pair{"1", "a"},
                                  {"2", "a"},
                                  {"3", "b"},
                                  {"4", "c"},
                                  {"5", "d"},
                                  {"6", "d"},
                                  {"7", "e"},
                                  {"8", "f"},
                                  {"9", "f"},
                                  {"0", "g"}}) {
      auto& m = broker.messages.emplace_back();
      m.id = id;
      m.topic = "things";
      m.type = "thing.done";
      m.key = key;
    }
    broker.partition = "things/0";
    worker = std::make_unique<consumer>(*db, broker, test::failing_consumer::plain());
    worker->on("things", "thing.done",
               [this, healed = time.now() - later + 300ms](const message& m, transaction& tx) {
                 const bool ill = time.now() < healed;
                 if (m.id == "5" && ill) throw std::runtime_error("not yet");
                 if (m.id == "7") throw handler_failed(failure_class::permanent, "never");
                 constexpr std::string_view insert = "insert into things_done (what) values ($1)";
                 if (m.id == "8" || m.id == "9" || m.id == "0")
                   tx.post(query{"test.effect", insert, insert}, {m.id});
                 else
                   tx.execute(insert, {m.id});
                 if (m.id == "8" && ill) throw std::runtime_error("not yet");
                 if (m.id == "0") throw handler_failed(failure_class::permanent, "never");
                 if (m.id == "1" && ill) throw std::runtime_error("not yet");
                 if (m.id == "3") throw handler_failed(failure_class::permanent, "never");
               });
  }

  void finish() {
    for (int i = 0; i < 16; ++i) {
      test::failing_consumer::drain(*worker);
      time.advance(i < 8 ? 100ms : 5s);
    }
    worker->leave();
  }

  testing::manual_time time;
  test::quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
  test::list_broker broker;
  std::unique_ptr<consumer> worker;
};

// Proves C1, C3, C8, D1, V3
TEST_P(failure_recovery, survive_a_failure_and_a_kill_at_every_fault_point) {
  const auto open_with = [&](const environment& env) {
    return GetParam() == dialect::postgres ? postgres::open(own->conninfo(), {.env = env})
                                           : sqlite::open(dir.file("service.db"), {.env = env});
  };
  const auto explored = testing::explore({
      .prepare =
          [&] {
            auto tx = db->begin();
            for (const auto* name :
                 {"processed_events", "processed_batches", "consumer_fences", "settled_logs",
                  "parked_messages", "parked_keys", "dlq_events", "outbox"})
              tx.execute("delete from " + table(name));
            tx.execute("delete from things_done");
            tx.commit();
            db.reset();  // with its threads: a fork takes none along
          },
      .run = [&](fault_points& faults) { failing_world(open_with, &faults, 0s).finish(); },
      .recover = [&] { failing_world(open_with, nullptr, 1h).finish(); },
      .check =
          [&](const std::string& where) {
            open();
            auto done = effects();
            EXPECT_LT(std::ranges::find(done, "1"), std::ranges::find(done, "2")) << where;
            EXPECT_LT(std::ranges::find(done, "5"), std::ranges::find(done, "6")) << where;
            EXPECT_LT(std::ranges::find(done, "8"), std::ranges::find(done, "9")) << where;
            std::ranges::sort(done);
            EXPECT_EQ(done, (names{"1", "2", "4", "5", "6", "8", "9"})) << where;
            std::set<std::string> given_up;
            for (const auto& letter : dead_letters(*db)) given_up.insert(letter.what.id);
            EXPECT_EQ(given_up, (std::set<std::string>{"0", "3", "7"})) << where;
            EXPECT_EQ(count("dlq_events"), 3) << where;
            EXPECT_EQ(count("outbox"), 3) << where << ": the announcements";
            EXPECT_EQ(count("parked_messages") + count("parked_keys"), 0) << where;
          },
  });
  for (const auto* effect : {"consumer.take_over", "consumer.handler", "consumer.commit", "consumer.announce",
                             "consumer.charge", "consumer.acknowledge", "consumer.end_work", "outbox.insert"})
    for (const auto* side : {".before", ".after"})
      EXPECT_GT(std::ranges::count(explored.points, std::string(effect) + side), 0) << effect << side;
}

INSTANTIATE_TEST_SUITE_P(databases, failure_recovery, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
