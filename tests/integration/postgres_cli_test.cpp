// The command line where the service's database is a PostgreSQL: the real program on the real server.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <optional>
#include <regex>

#include "queries/inspect.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/verify.hpp"
#include "sql/migrations.hpp"
#include "support/daemon_process.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::outcome;
using test::program;

class postgres_cli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
  }

  // Without --database, for calls that name another one.
  outcome call(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--data", dir.file("data")});
    auto done = program(SETTLE_CLI, std::move(arguments), dir.file("call"), {}).end();
    const auto secret = test::word_of(test::postgres_conninfo(), "password");
    EXPECT_EQ((done.out + done.err).find(secret), std::string::npos) << "it shows the password";
    return done;
  }

  outcome settle(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--database", own->conninfo()});
    return call(std::move(arguments));
  }

  json::value settle_json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const auto done = settle(std::move(arguments));
    EXPECT_EQ(done.code, 0) << done.err;
    return json::parse(done.out);
  }

  void migrate_both() { ASSERT_EQ(settle({"migrate"}).code, 0); }

  std::int64_t pending() { return settle_json({"status"}).at_pointer("/service/outbox/pending").as_int64(); }

  std::unique_ptr<database> open() const { return postgres::open(own->conninfo(), {.env = {.log = &log}}); }

  static void emit(database& db, const std::string& key, int count = 1) {
    auto tx = db.begin();
    for (int i = 0; i < count; ++i) publish(tx, event{.topic = "orders", .type = "order.placed", .key = key});
    tx.commit();
  }

  test::temp_dir dir;
  mutable test::quiet_log log;
  std::optional<test::scratch_database> own;
};

// Proves O1
TEST_F(postgres_cli, takes_an_event_from_publish_to_tail) {
  const auto created = settle_json({"migrate"});
  EXPECT_TRUE(created.at_pointer("/service/created").as_bool());
  EXPECT_FALSE(fs::exists(dir.file("data/settle.db")));
  EXPECT_EQ(settle_json({"migrate"}).at_pointer("/service/migrations_applied").as_int64(), 0);
  const auto published = settle({"publish", "orders", "order.placed", "--key", "42", "--payload", "{}"});
  ASSERT_EQ(published.code, 0) << published.err;
  const auto status = settle({"status"});
  EXPECT_NE(status.out.find("Service  database " + own->name() + " at "), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("1 pending (oldest for "), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("no relay is alive"), std::string::npos) << status.out;
  EXPECT_EQ(settle({"relay", "--once"}).out, "published 1 event\n");
  EXPECT_EQ(settle({"relay", "--once"}).out, "nothing to publish\n");
  EXPECT_EQ(pending(), 0);
  const auto shown = settle({"tail", "orders"});
  EXPECT_NE(shown.out.find(published.out.substr(0, 36)), std::string::npos) << shown.out;
  EXPECT_EQ(settle({"verify"}).code, 0);
}

// Proves O3
TEST_F(postgres_cli, counts_a_late_commit_as_pending_although_its_number_is_low) {
  migrate_both();
  const auto db = open();
  auto slow = db->begin();
  publish(slow, event{.topic = "orders", .type = "order.placed", .key = "slow"});
  slow.execute("select 1");  // sends it
  emit(*db, "quick", 3);
  ASSERT_EQ(settle({"relay", "--once"}).out, "published 3 events\n");
  EXPECT_EQ(pending(), 0) << "nobody sees it yet";
  slow.commit();
  EXPECT_EQ(pending(), 1);
  EXPECT_EQ(settle({"relay", "--once"}).out, "published 1 event\n");
  EXPECT_EQ(pending(), 0);
}

TEST_F(postgres_cli, counts_what_is_left_of_a_window_that_is_half_published) {
  migrate_both();
  const auto db = open();
  emit(*db, "one key", 25);
  emit(*db, "another", 3);
  test::recording_publisher destination;
  relay r(*db, destination, {.batch_max = 10});
  ASSERT_TRUE(r.run_once());
  r.leave();
  ASSERT_EQ(destination.seen.size(), 10u);
  EXPECT_EQ(pending(), 18);
}

// With statistics that say nothing, as those of a leaf that has just been filled. The plan, not the time, is
// what can be relied on.
TEST_F(postgres_cli, counts_what_is_pending_without_visiting_what_is_published) {
  migrate_both();
  const auto db = open();
  own->run("alter table settle.outbox_1 set (autovacuum_enabled = off)");
  emit(*db, "done", 2000);
  ASSERT_EQ(settle({"relay", "--once"}).out, "published 2,000 events\n");
  emit(*db, "waiting", 5);
  for (const bool analysed : {false, true}) {
    if (analysed) own->run("analyze settle.outbox");
    auto tx = db->read();
    tx.execute(queries::inspect::plan_for_counting);
    const auto plan = tx.execute(fmt::format("explain (analyze, buffers off, timing off) {}",
                                             queries::inspect::read_waiting.text(dialect::postgres)),
                                 {1'000'000});
    std::string text;
    for (std::size_t i = 0; i < plan.size(); ++i) text += plan[i][0].text() + "\n";
    EXPECT_EQ(text.find("Seq Scan on outbox"), std::string::npos) << text;
    EXPECT_FALSE(std::regex_search(text, std::regex("outbox_[0-7]_seq_idx"))) << text;
    EXPECT_EQ(text.find("Rows Removed by Filter: 2000"), std::string::npos) << text;
  }
  EXPECT_EQ(pending(), 5);
}

TEST_F(postgres_cli, publishes_with_the_rights_of_an_application) {
  migrate_both();
  const auto as_application = own->conninfo() + " options='-c role=settle_publisher'";
  const auto done = call({"publish", "orders", "order.placed", "--database", as_application});
  EXPECT_EQ(done.code, 0) << done.err;
  const auto refused = call({"status", "--database", as_application});
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_NE(refused.err.find("permission denied"), std::string::npos) << refused.err;
  EXPECT_EQ(pending(), 1);
}

// Roles belong to the whole server, so this one needs a server of its own.
TEST_F(postgres_cli, a_migration_that_may_not_create_the_publishers_role_says_so_and_how_to_mend_it) {
  const test::private_server server;
  const auto by_superuser = [&](const std::string& sql) { test::run_sql(server.conninfo(), sql); };
  by_superuser("create role shop login password 'counter'");
  by_superuser("create database shop owner shop");
  const auto as_owner = test::with(server.conninfo(), "dbname=shop user=shop password=counter");
  const auto created = call({"migrate", "--database", as_owner});
  EXPECT_EQ(created.code, 0) << created.err;
  EXPECT_NE(created.out.find("created, schema version"), std::string::npos) << created.out;
  EXPECT_NE(created.err.find("warning: There is no role settle_publisher"), std::string::npos) << created.err;
  const auto again = call({"migrate", "--json", "--database", as_owner});
  const auto warnings = json::parse(again.out).at("warnings").as_array();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].at("code").as_string(), "publisher_role");
  const std::string fix(warnings[0].at("fix").as_string());
  const auto first = fix.find('\n');
  by_superuser(fix.substr(0, first));
  test::run_sql(as_owner, fix.substr(first));
  const auto mended = call({"migrate", "--database", as_owner});
  EXPECT_EQ(mended.err, "");
  EXPECT_NO_THROW(
      test::run_sql(test::with(server.conninfo(), "dbname=shop"),
                    "set role settle_publisher; insert into settle.outbox_events (topic, event_type, "
                    "aggregate_id, payload) values ('t', 'e', 'k', 'x') returning event_id"));
}

TEST_F(postgres_cli, says_what_to_do_before_the_schema_is_there) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"status"}, {"publish", "t", "e"}, {"relay", "--once"}, {"verify"}}) {
    const auto done = settle(command);
    EXPECT_EQ(done.code, 2);
    EXPECT_NE(done.err.find("run `settle migrate --data "), std::string::npos) << done.err;
  }
  EXPECT_EQ(own->run("select count(*) from pg_namespace where nspname = 'settle'"), "0") << "it only looked";
}

TEST_F(postgres_cli, says_that_a_server_that_is_away_may_come_back) {
  migrate_both();
  const auto away = "postgresql://me:hunter2@127.0.0.1:1/orders";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"status"}, {"publish", "t", "e"}, {"migrate"}}) {
    auto all = command;
    all.insert(all.end(), {"--database", away, "--json"});
    const auto done = call(all);
    EXPECT_EQ(done.code, 3) << done.err;
    const auto about = json::parse(done.err).at("error");
    EXPECT_EQ(about.at("code").as_string(), "store_unavailable");
    EXPECT_NE(about.at("message").as_string().find("database orders at 127.0.0.1:1"), std::string::npos);
    EXPECT_EQ(done.err.find("hunter2"), std::string::npos) << done.err;
  }
}

TEST_F(postgres_cli, refuses_what_is_for_files) {
  migrate_both();
  const auto saved = settle({"backup", dir.file("monday")});
  EXPECT_EQ(saved.code, 2);
  EXPECT_NE(saved.err.find("pg_dump"), std::string::npos) << saved.err;
  EXPECT_NE(saved.err.find("settle outbox rebase"), std::string::npos) << saved.err;
  EXPECT_FALSE(fs::exists(dir.file("monday")));
  EXPECT_EQ(settle({"restore", dir.file("monday")}).code, 2);
  const auto broker = settle({"status", "--broker", own->conninfo()});
  EXPECT_EQ(broker.code, 2);
  EXPECT_NE(broker.err.find("--broker takes a file"), std::string::npos) << broker.err;
  const auto other = call({"status", "--database", "mysql://me:hunter2@db/orders"});
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err.find("hunter2"), std::string::npos) << other.err;
}

// Proves V2
TEST_F(postgres_cli, verify_counts_a_server_once_under_all_its_names) {
  migrate_both();
  {
    const auto db = open();
    auto tx = db->begin();
    note_committed(tx, {.topic = "orders", .key = "42", .subject = "42"});
    note_applied(tx, "warehouse", {.topic = "orders", .key = "42", .subject = "42"});
    tx.commit();
  }
  const auto other_name = own->conninfo() + " application_name=other";
  const auto report = settle_json({"verify", "--service", own->conninfo(), "--service", other_name});
  EXPECT_EQ(report.at("committed").as_int64(), 1);
  EXPECT_EQ(report.at("doubled").as_int64(), 0);
  own->run(
      "insert into settle.effects (kind, consumer, topic, key, subject, at) "
      "select kind, consumer, topic, key, subject, at from settle.effects where kind = 'applied'");
  const auto found = settle({"verify", "--json"});
  EXPECT_EQ(found.code, 1);
  EXPECT_EQ(json::parse(found.out).at("doubled").as_int64(), 1);
}

// Proves O12
TEST_F(postgres_cli, status_says_when_the_server_is_not_the_one_that_the_outbox_was_written_on) {
  migrate_both();
  EXPECT_FALSE(settle_json({"status"}).at_pointer("/service/outbox/cluster_changed").as_bool());
  own->run("update settle.identity set timeline = timeline + 1");
  EXPECT_TRUE(settle_json({"status"}).at_pointer("/service/outbox/cluster_changed").as_bool());
  const auto status = settle({"status"});
  EXPECT_NE(status.out.find("! this is not the server"), std::string::npos) << status.out;
}

// Proves O12
TEST_F(postgres_cli, rebases_an_outbox_and_relays_go_on) {
  migrate_both();
  const auto db = open();
  emit(*db, "before");
  ASSERT_EQ(settle({"relay", "--once"}).out, "published 1 event\n");
  emit(*db, "waiting", 2);
  own->run("update settle.identity set timeline = timeline + 1");
  const auto stopped = settle({"relay", "--once"});
  EXPECT_EQ(stopped.code, 2);
  EXPECT_NE(stopped.err.find("cluster_changed"), std::string::npos) << stopped.err;
  const auto explained = settle({"outbox", "rebase"});
  EXPECT_EQ(explained.code, 2);
  EXPECT_NE(explained.err.find("--yes"), std::string::npos) << explained.err;
  EXPECT_EQ(own->run("select generation from settle.identity"), "1") << "it only explained";
  const auto done = settle({"outbox", "rebase", "--yes"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.out.find("; 2 events are to be published"), std::string::npos) << done.out;
  EXPECT_EQ(pending(), 2);
  EXPECT_EQ(settle({"relay", "--once"}).out, "published 2 events\n");
  EXPECT_EQ(settle_json({"outbox", "rebase", "--yes"}).at("pending").as_int64(), 0);
  EXPECT_EQ(call({"outbox", "rebase", "--yes"}).code, 2) << "a file needs none";
}

// Proves O12
TEST_F(postgres_cli, prints_a_script_after_which_there_is_nothing_to_migrate) {
  const auto script = settle({"migrate", "--print"});
  ASSERT_EQ(script.code, 0) << script.err;
  EXPECT_EQ(own->run("select count(*) from pg_namespace where nspname = 'settle'"), "0") << "it only printed";
  EXPECT_EQ(script.out, call({"migrate", "--print", "--dialect", "postgres"}).out);
  own->run(script.out);
  EXPECT_EQ(settle_json({"migrate"}).at_pointer("/service/migrations_applied").as_int64(), 0);
  EXPECT_TRUE(settle({"migrate", "--print"}).out.starts_with("-- Nothing to do"));
  EXPECT_EQ(settle({"publish", "orders", "order.placed"}).code, 0);
  EXPECT_EQ(settle({"relay", "--once"}).out, "published 1 event\n");
}

TEST_F(postgres_cli, prints_only_what_the_database_lacks) {
  const auto all = sql::service_migrations(dialect::postgres);
  sql::apply_migrations(*open(), all.first(2));
  const auto script = settle_json({"migrate", "--print"});
  EXPECT_EQ(script.at("schema_version").as_int64(), 2);
  const std::string text(script.at("script").as_string());
  EXPECT_EQ(text.find("create table settle.outbox "), std::string::npos);
  own->run(text);
  EXPECT_EQ(settle_json({"migrate"}).at_pointer("/service/migrations_applied").as_int64(), 0);
}

TEST_F(postgres_cli, the_script_leaves_nothing_behind_unless_all_of_it_has_run) {
  const auto script = call({"migrate", "--print", "--dialect", "postgres"}).out;
  own->run(script.substr(0, script.rfind("commit;")));  // the connection ends here
  EXPECT_EQ(own->run("select count(*) from pg_namespace where nspname = 'settle'"), "0");
  own->run(script);
  EXPECT_THROW(own->run(script), std::runtime_error) << "it is for a database that has nothing yet";
  EXPECT_EQ(own->run("select count(*) from settle.identity"), "1");
}

}  // namespace
}  // namespace settle
