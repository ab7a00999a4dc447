// What decides about a message that fails again is counted in columns: its history is for people to read,
// keeps the last hundred failures only, and may say anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "dead_letter/shared.hpp"
#include "settle/testing.hpp"
#include "sql/migrations.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

struct failure_counts : test::failing_consumer {
  // Fails once more, in this way.
  void fail_again(consumer& c, failure_class how) {
    failing["1"] = how;
    const auto before = calls.size();
    while (calls.size() == before) {
      time.advance(1ms);
      drain(c);
    }
  }

  // A process begins this replay after another has ended. How many have by now.
  std::int64_t begin(const message& replay) {
    auto tx = db->begin();
    const auto begun = note_replay_start(tx, replay);
    tx.commit();
    return begun;
  }
};

// Proves C3
TEST_P(failure_counts, attempts_are_counted_although_the_history_has_forgotten_them) {
  deliver("1", "a");
  auto options = plain();
  options.retry_wait = options.retry_wait_max = 1ms;
  auto c = make_consumer(options);
  for (int i = 0; i < 4; ++i) fail_again(*c, failure_class::poison);
  for (int i = 0; i < 110; ++i) fail_again(*c, failure_class::transient);
  EXPECT_TRUE(dead_letters(*db).empty());
  fail_again(*c, failure_class::poison);
  ASSERT_EQ(dead_letters(*db).size(), 1u) << "the fifth for an unknown reason";
  EXPECT_EQ(dead_letters(*db)[0].reason, dead_letter_reason::exhausted);
  EXPECT_EQ(dead_letters(*db)[0].attempts, 115);
}

// Proves C3
TEST_P(failure_counts, the_pause_after_a_failure_for_an_unknown_reason_grows_with_those_alone) {
  deliver("1", "a");
  auto c = make_consumer();
  for (int i = 0; i < 3; ++i) fail_again(*c, failure_class::transient);
  for (const auto wait : {100ms, 400ms}) {
    fail_again(*c, failure_class::poison);
    const auto before = calls.size();
    time.advance(wait - 1ms);
    drain(*c);
    EXPECT_EQ(calls.size(), before) << wait.count();
  }
}

// Proves C9, D3
TEST_P(failure_counts, an_error_that_reads_like_a_crash_is_not_counted_as_one) {
  deliver("1", "1");
  refusing["1"] = failure_class::permanent;
  auto c = make_consumer();
  drain(*c);
  const auto replay = replay_message(1);
  const std::string imitated =
      R"([{"at":1,"class":"poison","error":"replay 1 begins after a process has ended"}])";
  {
    auto tx = db->begin();
    tx.execute("update " + table("dlq_events") + " set history = $1", {imitated});
    tx.commit();
  }
  EXPECT_EQ(begin(replay), 1);
  EXPECT_EQ(begin(replay), 2);
  EXPECT_EQ(dead_letters(*db).at(0).history.size(), 3u) << "people still see when it was begun";
}

// Proves C9, D3
TEST_P(failure_counts, processes_that_end_over_one_replay_are_not_held_against_the_next) {
  deliver("1", "1");
  refusing["1"] = failure_class::permanent;
  auto c = make_consumer();
  drain(*c);
  const auto first = replay_message(1);
  EXPECT_EQ(begin(first), 1);
  EXPECT_EQ(begin(first), 2);
  {
    auto tx = db->begin();
    replay_failed(tx, first, {time.now(), failure_class::poison, "no"});
    tx.commit();
  }
  EXPECT_EQ(begin(first), 0) << "it is over";
  EXPECT_EQ(begin(replay_message(2)), 1);
}

// A database of the version before the columns came.
struct older_counts : failure_counts {
  void SetUp() override {
    failure_counts::SetUp();
    if (IsSkipped()) return;
    const auto all = sql::service_migrations(GetParam());
    const auto columns = std::ranges::find(all, "failure_counts", &sql::migration::name);
    ASSERT_NE(columns, all.end());
    if (own) of_older.emplace();
    const environment env{.time = &time, .log = &log};
    older = own ? postgres::open(of_older->conninfo(), {.env = env})
                : sqlite::open(dir.file("older.db"), {.env = env});
    sql::apply_migrations(*older, {all.begin(), columns});
  }

  void insert(const std::string& into, const std::string& columns, const std::string& values,
              const std::string& history) {
    auto tx = older->begin();
    tx.execute("insert into " + table(into) + " (" + columns +
                   ", history, consumer, topic, message_key, log, position, message_id, source, event_type, "
                   "subject, content_type, event_time, extensions, payload) values (" +
                   values + ", $1, 'c', 't', '', '', 0, 'm', 's', 'e', '', '', 0, '', $2)",
               {history, blob{""}});
    tx.commit();
  }

  std::vector<std::int64_t> read(const std::string& column, const std::string& from) {
    const auto rows = older->read().execute("select " + column + " from " + table(from) + " order by id");
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(rows[i][0].integer());
    return all;
  }

  static std::string failed(const std::string& why, const std::string& error = "no") {
    return R"({"at":1,"class":")" + why + R"(","error":")" + error + R"("})";
  }

  std::optional<test::scratch_database> of_older;
  std::unique_ptr<database> older;
};

// Proves C3
TEST_P(older_counts, attempts_of_parked_messages_are_taken_over_as_they_were_judged) {
  const auto park = [&](int attempts, const std::string& history) {
    insert("parked_messages", "attempts, single", std::to_string(attempts) + ", ''", history);
  };
  const auto poison = failed("poison");
  const auto passes = failed("transient") + "," + failed("outage");
  const auto quoted = failed("transient", R"(\"class\":\"poison\")");
  park(0, "[]");
  park(3, "[" + poison + "," + poison + "," + poison + "]");
  park(4, "[" + poison + "," + passes + "," + poison + "]");
  park(150, "[" + poison + "," + poison + "]");
  park(150, "[" + poison + "," + passes + "]");
  park(1, "[" + quoted + "]");
  migrate(*older);
  EXPECT_EQ(read("charged", "parked_messages"), (std::vector<std::int64_t>{0, 3, 2, 150, 1, 0}));
}

// Proves C9, D3
TEST_P(older_counts, processes_that_ended_over_a_replay_are_taken_over) {
  const auto write = [&](const std::string& status, int replays, const std::string& history) {
    insert("dlq_events", "consumer_version, reason, error, attempts, failed_at, blocks_key, status, replays",
           std::string("'', 'exhausted', '', 1, 0, ") + (own ? "false" : "0") + ", '" + status + "', " +
               std::to_string(replays),
           history);
  };
  const auto begins = [](int replay) {
    return failed("poison", "replay " + std::to_string(replay) + " begins after a process has ended");
  };
  const auto both = "[" + begins(1) + "," + begins(1) + "," + failed("poison") + "," + begins(2) + "]";
  write("REPLAYING", 1, both);
  write("REPLAYING", 2, both);
  write("REPLAYING", 12, "[" + begins(1) + "," + begins(2) + "]");
  write("REPLAYING", 1, "[]");
  write("NEW", 2, both);
  migrate(*older);
  EXPECT_EQ(read("starts", "dlq_events"), (std::vector<std::int64_t>{2, 1, 0, 0, 0}));
}

const auto databases = ::testing::Values(dialect::sqlite, dialect::postgres);
const auto database_name = [](const ::testing::TestParamInfo<dialect>& of) {
  return of.param == dialect::sqlite ? "sqlite" : "postgres";
};
INSTANTIATE_TEST_SUITE_P(databases, failure_counts, databases, database_name);
INSTANTIATE_TEST_SUITE_P(databases, older_counts, databases, database_name);

}  // namespace
}  // namespace settle
