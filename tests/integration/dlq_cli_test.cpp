// settle dlq as an operator meets it: the real program, on both databases. The consumer is played by the
// test.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "support/daemon_process.hpp"
#include "support/dead_letter_world.hpp"

namespace settle {
namespace {

namespace json = boost::json;
using namespace std::string_literals;
using test::outcome;
using test::program;
using words = std::vector<std::string>;

struct dlq_cli : test::dead_letter_world {
  words with_database(words arguments) {
    arguments.insert(arguments.begin(), "dlq");
    arguments.insert(arguments.end(),
                     {"--database", on_postgres() ? own->conninfo() : dir.file("service.db")});
    return arguments;
  }

  outcome settle(const words& arguments) {
    return program(SETTLE_CLI, with_database(arguments), dir.file("call"), {}).end();
  }

  json::value settle_json(words arguments) {
    arguments.emplace_back("--json");
    const auto done = settle(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return json::parse(done.out);
  }

  std::vector<std::int64_t> listed(words arguments) {
    arguments.insert(arguments.begin(), "list");
    std::vector<std::int64_t> ids;
    const auto found = settle_json(arguments);
    for (const auto& one : found.as_array()) ids.push_back(one.at("id").as_int64());
    return ids;
  }

  // While it runs, what it sends is delivered and run by `consumer`.
  outcome replay_with(const words& arguments, const std::function<void(const message&)>& consumer) {
    auto all = with_database(arguments);
    all.insert(all.begin() + 1, "replay");
    program running(SETTLE_CLI, all, dir.file("replay"), {});
    siginfo_t ended{};
    const auto has_ended = [&] {
      for (const auto& m : deliver()) consumer(m);
      return ::waitid(P_PID, static_cast<id_t>(running.pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
             ended.si_pid != 0;
    };
    EXPECT_TRUE(test::eventually(has_ended));
    return running.end();
  }

  auto runs() {
    return [this](const message& m) { take(m); };
  }
  auto fails() {
    return [this](const message& m) { fail(m, "still broken"); };
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_P(dlq_cli, says_so_when_there_are_none) {
  EXPECT_TRUE(has(settle({"list"}).out, "no dead letter matches"));
  EXPECT_EQ(settle({"stats"}).out, "there are no dead letters\n");
  EXPECT_EQ(settle({"replay", "--all"}).out, "nothing to replay: no letter is NEW and matches\n");
  const auto missing = settle({"show", "7"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_TRUE(has(missing.err, "there is no dead letter 7")) << missing.err;
}

// Proves D1
TEST_P(dlq_cli, lists_what_waits_and_shows_everything_about_one) {
  write_many(2);
  auto odd = letter(placed("k\x1b[2J", "\x01\xff"s));
  odd.error = "two\nlines \x1b[31m";
  const auto id = write(odd);
  const auto list = settle({"list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_TRUE(has(list.out, "2023-11-14T22:13:20Z  NEW     warehouse  orders  order.placed")) << list.out;
  EXPECT_TRUE(has(list.out, "no such article"));
  EXPECT_FALSE(has(list.out, "\x1b")) << "foreign text must not steer the terminal";
  const auto show = settle({"show", std::to_string(id)});
  EXPECT_TRUE(has(show.out, "Dead letter " + std::to_string(id) + ", NEW\n")) << show.out;
  EXPECT_TRUE(has(show.out, "exhausted, after 5 attempts"));
  EXPECT_TRUE(has(show.out, "two\\nlines  [31m")) << show.out;
  EXPECT_TRUE(has(show.out, "poison  no such article"));
  EXPECT_TRUE(has(show.out, "tenant: blue"));
  EXPECT_TRUE(has(show.out, "0000  01 ff\n")) << "a payload that is no text is shown in hex";
  EXPECT_FALSE(has(show.out, "\x1b"));
  const auto object = settle_json({"show", "1"});
  EXPECT_EQ(object.at("status"), "NEW");
  EXPECT_EQ(object.at("attempts"), 5);
  EXPECT_EQ(object.at_pointer("/history/0/error"), "no such article");
  EXPECT_EQ(object.at_pointer("/history/0/class"), "poison");
  EXPECT_EQ(object.at("topic"), "orders");
  EXPECT_TRUE(object.at_pointer("/message/data").is_object());
  const auto stats = settle_json({"stats"});
  EXPECT_EQ(stats.at(0).at("count"), 3);
  EXPECT_TRUE(has(settle({"stats"}).out, "      3  NEW     warehouse"));
}

TEST_P(dlq_cli, lists_by_filters_and_in_pages) {
  write_many(3);
  auto other = letter(placed("p"));
  other.consumer = "billing";
  other.what.topic = "payments";
  other.what.type = "payment.failed";
  other.reason = dead_letter_reason::too_old;
  other.failed_at += std::chrono::hours(1);
  const auto id = write(other);
  const std::vector<std::int64_t> only{id};
  EXPECT_EQ(listed({"--consumer", "billing"}), only);
  EXPECT_EQ(listed({"--topic", "payments"}), only);
  EXPECT_EQ(listed({"--type", "payment.failed"}), only);
  EXPECT_EQ(listed({"--key", "p"}), only);
  EXPECT_EQ(listed({"--reason", "too_old"}), only);
  EXPECT_EQ(listed({"--event", other.what.id, "--status", "any"}), only);
  EXPECT_EQ(listed({"--since", "2023-11-14T23:00:00Z"}), only);
  EXPECT_EQ(listed({"--until", "2023-11-14T23:00:00Z"}).size(), 3u);
  EXPECT_EQ(listed({"--since", "2023-11-14", "--until", "1h"}).size(), 4u);
  EXPECT_EQ(listed({"--since", "3d"}).size(), 0u);
  EXPECT_EQ(listed({"--status", "REPLAYED"}).size(), 0u);
  EXPECT_EQ(listed({"--limit", "2"}), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(listed({"--limit", "2", "--after", "2"}), (std::vector<std::int64_t>{3, 4}));
  EXPECT_TRUE(has(settle({"list", "--limit", "2"}).out, "There are more: --after 2 "));
  EXPECT_FALSE(has(settle({"list", "--limit", "4"}).out, "There are more"));
}

// Proves D3
TEST_P(dlq_cli, replays_what_it_was_told_to) {
  write_many(4);
  const auto dry = settle({"replay", "--consumer", "warehouse", "--dry-run"});
  EXPECT_TRUE(has(dry.out, "would replay 4 letters; nothing was sent")) << dry.out << dry.err;
  EXPECT_EQ(settle_json({"replay", "1", "--dry-run"}).at("matching"), 1);
  EXPECT_TRUE(deliver().empty());
  const auto one = replay_with({"2"}, runs());
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, "1 of 1 letter replayed\n");
  const auto rest = replay_with({"--all", "--json"}, runs());
  EXPECT_EQ(rest.code, 0);
  EXPECT_EQ(json::parse(rest.out), json::parse(R"({"end": "done", "matching": 3, "sent": 3, "ran": 3,
                                                   "failed_again": 0, "waiting": 0, "left_out": 0})"));
  EXPECT_EQ(listed({"--status", "REPLAYED"}).size(), 4u);
}

// Proves C10, D3
TEST_P(dlq_cli, leaves_out_what_may_have_been_applied_unless_it_is_named) {
  write_many(4);
  {
    auto tx = db->begin();
    tx.execute("update " + std::string(on_postgres() ? "settle." : "settle_") +
               "dlq_events set reason = 'beyond_dedup_horizon' where id in (1, 3)");
    tx.commit();
  }
  const auto dry = settle({"replay", "--all", "--dry-run"});
  EXPECT_TRUE(has(dry.out, "would replay 2 letters; nothing was sent")) << dry.out;
  EXPECT_TRUE(has(dry.err, "2 letters were left out")) << dry.err;
  EXPECT_TRUE(has(dry.err, "--reason beyond_dedup_horizon")) << dry.err;
  const auto some = replay_with({"--consumer", "warehouse"}, runs());
  EXPECT_EQ(some.out, "2 of 2 letters replayed\n") << some.err;
  EXPECT_EQ(replay_with({"3"}, runs()).out, "1 of 1 letter replayed\n") << "by its number";
  EXPECT_EQ(replay_with({"--reason", "beyond_dedup_horizon"}, runs()).out, "1 of 1 letter replayed\n");
}

// Proves D3
TEST_P(dlq_cli, stops_when_letters_fail_again_and_says_what_to_do) {
  write_many(4);
  const auto done = replay_with({"--all"}, fails());
  EXPECT_EQ(done.code, 1);
  EXPECT_EQ(done.out, "0 of 4 letters replayed, 1 failed again, 3 not sent\n");
  EXPECT_TRUE(has(done.err, "too many of a batch failed again")) << done.err;
  EXPECT_TRUE(has(done.err, "settle dlq show ID"));
  EXPECT_TRUE(has(settle({"show", "1"}).out, "still broken"));
  const auto all = replay_with({"--all", "--failures-max", "1", "--batches", "2,2"}, fails());
  EXPECT_EQ(all.code, 0) << "as asked: " << all.err;
  EXPECT_EQ(all.out, "0 of 4 letters replayed, 4 failed again\n");
}

// Proves D3
TEST_P(dlq_cli, gives_up_waiting_for_a_consumer_that_does_not_run) {
  write_many(2);
  const auto done = settle({"replay", "--all", "--wait", "0"});
  EXPECT_EQ(done.code, 1);
  EXPECT_EQ(done.out, "0 of 2 letters replayed, 1 waiting, 1 not sent\n");
  EXPECT_TRUE(has(done.err, "is the consumer running, and a relay")) << done.err;
  EXPECT_TRUE(has(done.err, "settle dlq replay --all --status REPLAYING"));
  EXPECT_EQ(deliver().size(), 1u) << "lost, as if the broker had lost it";
  EXPECT_EQ(settle({"replay", "--all", "--status", "REPLAYING"}).out,
            "nothing to replay: no letter is REPLAYING and matches\n")
      << "it was sent only now";
  EXPECT_TRUE(test::eventually([&] {
    const auto again = replay_with({"--all", "--status", "replaying", "--wait", "1"}, runs());
    return again.code == 0 && again.out == "1 of 1 letter replayed\n";
  }));
}

TEST_P(dlq_cli, ends_what_it_does_when_it_is_told_to_stop) {
  write_many(2);
  program running(SETTLE_CLI, with_database({"replay", "--all"}), dir.file("replay"), {});
  EXPECT_TRUE(test::eventually([&] { return !deliver().empty(); }));
  const auto done = running.end(SIGTERM);
  EXPECT_EQ(done.code, 1);
  EXPECT_TRUE(has(done.err, "stopped while 1 letter was under way. It stays REPLAYING")) << done.err;
}

// Proves D4
TEST_P(dlq_cli, discards_what_it_was_told_to_and_shows_why) {
  write_many(4);
  const auto dry = settle({"discard", "--consumer", "warehouse", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_TRUE(has(dry.out, "would discard 4 letters; nothing was changed\n")) << dry.out;
  EXPECT_EQ(settle({"discard", "2"}).code, 2) << "without a reason";
  EXPECT_EQ(listed({}).size(), 4u);
  const auto one = settle({"discard", "2", "--reason", "cancelled by hand"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, "1 of 1 letter discarded\n");
  EXPECT_TRUE(has(settle({"show", "2"}).out, "cancelled by hand"));
  EXPECT_EQ(settle_json({"show", "2"}).at("discard_reason"), "cancelled by hand");
  EXPECT_EQ(settle_json({"show", "1"}).at("discard_reason"), nullptr);
  EXPECT_EQ(listed({}), (std::vector<std::int64_t>{1, 3, 4}));
  EXPECT_EQ(listed({"--status", "DISCARDED"}), std::vector<std::int64_t>{2});
  const auto rest = settle_json({"discard", "--given-up", "exhausted", "--reason", "all cancelled"});
  EXPECT_EQ(rest, json::parse(R"({"matching": 3, "discarded": 3, "stopped": false})"));
  EXPECT_EQ(settle({"discard", "--all", "--reason", "x"}).out,
            "nothing to discard: no letter is NEW and matches\n");
  EXPECT_EQ(settle({"discard", "2", "--reason", "x"}).code, 2) << "it has been";
  EXPECT_TRUE(deliver().empty()) << "nothing is sent";
}

TEST_P(dlq_cli, refuses_what_makes_no_sense_before_anything_is_sent) {
  write_many(2);
  const auto refused = [&](const words& arguments, const std::string& why) {
    const auto done = settle(arguments);
    EXPECT_EQ(done.code, 2) << why;
    EXPECT_TRUE(has(done.err, why)) << done.err;
  };
  refused({"replay"}, "say which letters");
  refused({"replay", "1", "--all"}, "either the ids of letters or --all");
  refused({"replay", "1", "99"}, "1 of the 2 ids name no dead letter that is NEW");
  refused({"replay", "--all", "--status", "REPLAYED"}, "--status is NEW or REPLAYING");
  refused({"replay", "--all", "--status", "ANY"}, "--status is NEW or REPLAYING");
  refused({"replay", "--all", "--batches", "1,0"}, "--batches");
  refused({"replay", "--all", "--failures-max", "2"}, "--failures-max");
  refused({"list", "--status", "OLD"}, "'OLD' is no status");
  refused({"list", "--reason", "whim"}, "'whim' is no reason");
  refused({"list", "--since", "yesterday"}, "--since 'yesterday' is no time");
  EXPECT_TRUE(deliver().empty());
}

INSTANTIATE_TEST_SUITE_P(databases, dlq_cli, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
