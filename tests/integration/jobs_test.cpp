// Staged jobs, on both databases.
#include "settle/jobs.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct staged_jobs : ::testing::TestWithParam<dialect> {
  void SetUp() override {
    if (GetParam() == dialect::postgres) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    const environment env{.time = &time, .log = &log, .counters = &counters};
    db = GetParam() == dialect::postgres ? postgres::open(own->conninfo(), {.env = env})
                                         : sqlite::open(dir.file("service.db"), {.env = env});
    migrate(*db);
    broker = sqlite::open_broker(dir.file("broker.db"), {.env = env});
    drainer.emplace(*db, broker->publishing());
    auto tx = db->begin();
    tx.execute("create table mails (address text not null)");
    tx.commit();
  }

  event_id stage(const std::string& address, const job_options& options = {}) {
    auto tx = db->begin();
    const auto id = stage_job(tx, {.name = "welcome", .payload = address}, options);
    tx.commit();
    return id;
  }

  static void send_mail(const job& what, transaction& tx) {
    tx.execute("insert into mails (address) values ($1)", {what.payload});
  }

  void run(job_runner& runner) {
    while (drainer->run_once() || runner.run_once()) {
    }
  }

  names mails() {
    const auto rows = db->read().execute("select address from mails order by address");
    names all;
    for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(rows[i][0].text());
    return all;
  }

  std::optional<test::scratch_database> own;
  test::temp_dir dir;
  testing::manual_time time;
  test::quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;
  std::unique_ptr<settle::broker> broker;
  std::optional<relay> drainer;
};

// Proves O11
TEST_P(staged_jobs, run_once_if_their_transaction_commits_and_never_if_it_does_not) {
  stage("a");
  stage("b");
  {
    auto tx = db->begin();
    stage_job(tx, {.name = "welcome", .payload = "rolled back"});
  }
  job_runner first(*db, *broker), second(*db, *broker);
  first.on("welcome", send_mail);
  second.on("welcome", send_mail);
  run(first);
  run(second);
  time.advance(1h);
  run(first);
  EXPECT_EQ(mails(), (names{"a", "b"}));
}

// Proves O11
TEST_P(staged_jobs, a_staging_that_is_repeated_runs_once) {
  const auto id = stage("a");
  stage("a", {.id = id});
  job_runner runner(*db, *broker);
  runner.on("welcome", send_mail);
  run(runner);
  EXPECT_EQ(mails(), names{"a"});
  EXPECT_EQ(runner.counts().duplicates, 1);
}

// Proves O11, O13
TEST_P(staged_jobs, wait_for_their_time) {
  stage("later", {.run_at = time.now() + 1h});
  job_runner runner(*db, *broker);
  runner.on("welcome", send_mail);
  run(runner);
  EXPECT_TRUE(mails().empty());
  time.advance(1h);
  run(runner);
  EXPECT_EQ(mails(), names{"later"});
}

// Proves O11
TEST_P(staged_jobs, one_that_fails_is_undone_and_tried_again) {
  stage("a");
  job_runner runner(*db, *broker);
  int failures = 2;
  runner.on("welcome", [&](const job& what, transaction& tx) {
    send_mail(what, tx);
    if (failures-- > 0) throw std::runtime_error("the mail server is away");
  });
  for (int i = 0; i < 10; ++i) {
    run(runner);
    time.advance(1s);
  }
  EXPECT_EQ(mails(), names{"a"});
}

// Proves O11
TEST_P(staged_jobs, one_that_nobody_can_run_yet_waits_for_somebody_who_can) {
  const auto id = stage("a");
  {
    job_runner old(*db, *broker);
    run(old);
    EXPECT_EQ(old.counts().failures, 1);
    EXPECT_EQ(old.counts().ignored, 0);
    old.leave();
  }
  job_runner runner(*db, *broker);
  std::string got;
  runner.on("welcome",
            [&](const job& what, transaction&) { got = what.id + " " + what.queue + " " + what.payload; });
  time.advance(1h);
  run(runner);
  EXPECT_EQ(got, id.text() + " default a");
}

TEST_P(staged_jobs, queues_have_nothing_to_do_with_each_other) {
  auto tx = db->begin();
  stage_job(tx, {.name = "welcome", .payload = "slow", .queue = "bulk"});
  EXPECT_EQ(test::code_of([&] { stage_job(tx, {.name = "welcome", .queue = ""}); }), errc::invalid_name);
  tx.commit();
  stage("quick");
  job_runner runner(*db, *broker);
  runner.on("welcome", send_mail);
  run(runner);
  EXPECT_EQ(mails(), names{"quick"});
  job_runner bulk(*db, *broker, {.queue = "bulk"});
  bulk.on("welcome", send_mail);
  run(bulk);
  EXPECT_EQ(mails(), (names{"quick", "slow"}));
}

INSTANTIATE_TEST_SUITE_P(databases, staged_jobs, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
