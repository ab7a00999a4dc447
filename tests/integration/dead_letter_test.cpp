// Dead letters as rows and as events, and a replay as it reaches its consumer; on both databases.
#include "settle/dead_letter.hpp"

#include <gtest/gtest.h>

#include "base/time_text.hpp"
#include "dead_letter/shared.hpp"
#include "settle/driver/broker.hpp"
#include "support/dead_letter_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

struct dead_letter_rows : test::dead_letter_world {
  // As the consumer would get it: the letter's message, addressed.
  message replay_of(const dead_letter& of, std::int64_t replays) {
    auto m = of.what;
    m.extensions["settlereplayfor"] = of.consumer;
    m.extensions["settlereplayof"] = std::to_string(of.id) + "." + std::to_string(replays);
    return m;
  }

  // As replay() leaves the row.
  message ask_for(std::int64_t id) {
    auto tx = db->begin();
    tx.execute(
        "update " + table("dlq_events") + " set status = 'REPLAYING', replays = replays + 1 where id = $1",
        {id});
    tx.commit();
    const auto found = dead_letters(*db, {.ids = {id}}).at(0);
    return replay_of(found, found.replays);
  }
};

// Proves D1
TEST_P(dead_letter_rows, keep_everything_that_is_known) {
  auto written = letter(placed("42", "\0\xff{}"s));
  written.blocks_key = true;
  written.error = "first line\nsecond";
  const auto id = write(written);
  const auto read = only_letter();
  EXPECT_EQ(read.id, id);
  EXPECT_EQ(read.consumer, "warehouse");
  EXPECT_EQ(read.consumer_version, "1.2");
  EXPECT_EQ(read.status, dead_letter_status::fresh);
  EXPECT_EQ(read.reason, dead_letter_reason::exhausted);
  EXPECT_EQ(read.error, "first line\nsecond");
  EXPECT_EQ(read.attempts, 5);
  ASSERT_EQ(read.history.size(), 1u);
  EXPECT_EQ(read.history[0].error, "no such article");
  EXPECT_EQ(read.history[0].at, time.now());
  EXPECT_EQ(read.failed_at, time.now());
  EXPECT_TRUE(read.blocks_key);
  EXPECT_EQ(read.replays, 0);
  EXPECT_EQ(read.replayed_at, std::nullopt);
  EXPECT_EQ(read.log, "orders/3");
  EXPECT_EQ(read.position, "41");
  EXPECT_EQ(read.what.id, written.what.id);
  EXPECT_EQ(read.what.source, "settle:orders");
  EXPECT_EQ(read.what.type, "order.placed");
  EXPECT_EQ(read.what.topic, "orders");
  EXPECT_EQ(read.what.key, "42");
  EXPECT_EQ(read.what.subject, "order/42");
  EXPECT_EQ(read.what.content_type, "application/json");
  EXPECT_EQ(read.what.time, time.now());
  EXPECT_EQ(read.what.extensions, written.what.extensions);
  EXPECT_EQ(read.what.payload, "\0\xff{}"s);
}

// Proves D1
TEST_P(dead_letter_rows, are_announced_on_the_topic_of_dead_letters) {
  auto written = letter(placed("42", "payload"));
  written.error = "not \xff found\n" + std::string(2000, 'x');
  write(written);
  const auto seen = deliver();
  ASSERT_EQ(seen.size(), 1u);
  const auto& m = seen[0];
  EXPECT_EQ(m.topic, "orders.dlq");
  EXPECT_EQ(m.id, written.what.id);
  EXPECT_EQ(m.type, "order.placed");
  EXPECT_EQ(m.key, "42");
  EXPECT_EQ(m.subject, "order/42");
  EXPECT_EQ(m.content_type, "application/json");
  EXPECT_EQ(m.payload, "payload");
  auto extensions = m.extensions;
  EXPECT_NE(extensions["sequence"], "7") << "its own, not the original's";
  extensions.erase("sequence");
  extensions.erase("settleplace");
  EXPECT_EQ(extensions, (attributes{{"correlationid", "c-1"},
                                    {"tenant", "blue"},
                                    {"settledlqreason", "exhausted"},
                                    {"settledlqerror", "not \xef\xbf\xbd found " + std::string(986, 'x')},
                                    {"settledlqattempts", "5"},
                                    {"settledlqconsumer", "warehouse"},
                                    {"settledlqfailedat", to_rfc3339(time.now())},
                                    {"settledlqtopic", "orders"},
                                    {"settledlqpartition", "orders/3"},
                                    {"settledlqoffset", "41"}}));
  for (const auto& [name, unused] : cloudevents_attributes(m)) {
    EXPECT_LE(name.size(), 20u) << name << ": CloudEvents says that names should not be longer";
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos) << name;
  }
  EXPECT_EQ(log.count("dead_lettered consumer=warehouse id=1 message_id=" + m.id), 1u);
  EXPECT_EQ(counters.value("settle_dead_letters_total", {{"consumer", "warehouse"}, {"reason", "exhausted"}}),
            1);
}

// Proves D1
TEST_P(dead_letter_rows, and_their_announcement_commit_together_or_not_at_all) {
  {
    auto tx = db->begin();
    write_dead_letter(tx, letter(placed("42")));
  }
  EXPECT_TRUE(deliver().empty());
  EXPECT_TRUE(dead_letters(*db).empty());
  std::size_t announced = 0;
  const auto ran = testing::explore({
      .prepare = [&] {},
      .run =
          [&](fault_points& faults) {
            const auto own_db = open(&faults);
            auto tx = own_db->begin();
            write_dead_letter(tx, letter(placed("42")));
            tx.commit("consumer.commit");
          },
      .recover = [] {},
      .check =
          [&](const std::string& where) {
            announced += deliver().size();
            EXPECT_EQ(dead_letters(*db).size(), announced) << where;
          },
  });
  EXPECT_GT(announced, 1u);
  EXPECT_GT(ran.points.size(), 5u);
}

TEST_P(dead_letter_rows, of_messages_without_a_uuid_are_announced_under_a_new_id) {
  auto foreign = letter(placed("42"));
  foreign.what.id = "amq-7";
  foreign.what.content_type = "";
  foreign.log = "";
  write(foreign);
  const auto seen = deliver();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(event_id::parse(seen[0].id));
  EXPECT_EQ(seen[0].content_type, "application/octet-stream");
  EXPECT_FALSE(seen[0].extensions.contains("settledlqpartition"));
  EXPECT_EQ(only_letter().what.id, "amq-7");
}

// Proves D1
TEST_P(dead_letter_rows, are_written_even_if_they_cannot_be_announced) {
  auto long_topic = letter(placed("42"));
  long_topic.what.topic = std::string(252, 't');
  write(long_topic);
  auto no_type = letter(placed("42"));
  no_type.what.type = "";
  write(no_type);
  auto large = letter(placed("42", std::string(2 * 1024 * 1024, 'x')));
  write(large);
  EXPECT_EQ(dead_letters(*db).size(), 3u);
  EXPECT_EQ(log.count("dead_letter_not_announced"), 2u);
  EXPECT_EQ(deliver().size(), 1u) << "a payload of any size was accepted before";
}

// Proves D3
TEST_P(dead_letter_rows, are_taken_once_however_often_their_replay_is_delivered) {
  const auto id = write(letter(placed("42", "payload")));
  EXPECT_FALSE(take(replay_of(only_letter(), 0))) << "nobody has asked for it";
  const auto m = ask_for(id);
  EXPECT_EQ(replay_address(m), "warehouse");
  auto other = m;
  other.extensions["settlereplayfor"] = "billing";
  EXPECT_FALSE(take(other));
  time.advance(1h);
  {
    auto tx = db->begin();
    const auto taken = take_replay(tx, m);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->status, dead_letter_status::replayed);
    EXPECT_EQ(taken->what.id, m.id);
    EXPECT_EQ(taken->what.payload, "payload");
    EXPECT_EQ(taken->what.extensions, (attributes{{"correlationid", "c-1"},
                                                  {"sequence", "7"},
                                                  {"settleplace", "p"},
                                                  {"tenant", "blue"},
                                                  {"settlereplay", "1"},
                                                  {"settleoutoforder", "true"}}));
  }
  EXPECT_EQ(only_letter().status, dead_letter_status::replaying) << "rolled back";
  EXPECT_TRUE(take(m));
  EXPECT_FALSE(take(m));
  EXPECT_EQ(only_letter().status, dead_letter_status::replayed);
  EXPECT_EQ(only_letter().replayed_at, time.now());
}

TEST_P(dead_letter_rows, that_block_their_key_are_replayed_in_order) {
  auto blocking = letter(placed("42"));
  blocking.blocks_key = true;
  for (const auto& of : {blocking, letter(placed(""))}) {
    const auto m = ask_for(write(of));
    auto tx = db->begin();
    EXPECT_FALSE(take_replay(tx, m)->what.extensions.contains("settleoutoforder"));
  }
}

// Proves D3
TEST_P(dead_letter_rows, are_new_again_when_their_replay_fails) {
  const auto id = write(letter(placed("42")));
  const auto first = ask_for(id);
  time.advance(1s);
  fail(first, "still no such article");
  fail(first, "a second copy of the same replay");
  auto read = only_letter();
  EXPECT_EQ(read.status, dead_letter_status::fresh);
  EXPECT_EQ(read.attempts, 6);
  EXPECT_EQ(read.error, "still no such article");
  ASSERT_EQ(read.history.size(), 2u);
  EXPECT_EQ(read.history[1].at, time.now());
  EXPECT_EQ(counters.value("settle_replays_failed_total", {{"consumer", "warehouse"}}), 1);
  EXPECT_EQ(log.count("replay_failed"), 1u);
  const auto second = ask_for(id);
  EXPECT_FALSE(take(first)) << "a late copy of the first replay";
  fail(first, "late");
  EXPECT_TRUE(take(second));
  fail(second, "late");
  EXPECT_EQ(only_letter().status, dead_letter_status::replayed);
}

TEST_P(dead_letter_rows, are_not_moved_by_messages_that_replay_nothing) {
  const auto id = write(letter(placed("42")));
  auto m = ask_for(id);
  EXPECT_EQ(replay_address(placed("1")), "");
  EXPECT_FALSE(take(placed("1")));
  for (const auto* bad : {"", ".", "1", "1.", ".1", "1.x", "1.1.1", "99999999999999999999.1", " 1.1"}) {
    m.extensions["settlereplayof"] = bad;
    EXPECT_FALSE(take(m)) << bad;
    fail(m, "?");
  }
  EXPECT_EQ(only_letter().status, dead_letter_status::replaying);
}

INSTANTIATE_TEST_SUITE_P(databases, dead_letter_rows, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
