// settle doctor as a user meets it: the real program, on files and on a server.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "doctor/doctor.hpp"
#include "settle/driver/broker.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "support/doctor_fixture.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

namespace json = boost::json;

struct outcome {
  int code = -1;
  std::string out;
};

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

outcome settle_doctor(const std::vector<std::string>& arguments) {
  std::string line = quoted(SETTLE_CLI) + " doctor";
  for (const auto& one : arguments) line += " " + quoted(one);
  FILE* pipe = ::popen((line + " 2>&1").c_str(), "r");
  outcome of;
  for (char buffer[4096]; const auto got = std::fread(buffer, 1, sizeof buffer, pipe);)
    of.out.append(buffer, got);
  const int status = ::pclose(pipe);
  of.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return of;
}

bool json_has(const std::string& out, const std::string& code) {
  const auto parsed = json::parse(out);
  for (const auto& one : parsed.at("findings").as_array())
    if (one.at("code").as_string() == code) return true;
  return false;
}

class doctor_on_a_file : public ::testing::Test {
 protected:
  void SetUp() override {
    db = sqlite::open(path, {.env = {.log = &log}});
    migrate(*db);
  }
  void emit(int count = 1) {
    auto tx = db->begin();
    for (int i = 0; i < count; ++i) publish(tx, event{.topic = "t", .type = "e", .key = "k", .payload = "x"});
    tx.commit();
  }
  outcome examine(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--database", path});
    return settle_doctor(more);
  }

  temp_dir dir;
  std::string path = dir.file("orders.db");
  quiet_log log;
  std::unique_ptr<database> db;
};

TEST_F(doctor_on_a_file, that_is_healthy_ends_with_0) {
  emit();
  recording_publisher destination;
  relay r(*db, destination);
  while (r.run_once()) {
  }
  r.leave();
  const auto done = examine({"--check-integrity"});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_NE(done.out.find("0 problems, 0 warnings"), std::string::npos) << done.out;
}

TEST_F(doctor_on_a_file, with_events_that_nobody_relays_ends_with_1) {
  emit(3);
  const auto done = examine();
  EXPECT_EQ(done.code, 1);
  EXPECT_NE(done.out.find("PROBLEM  Events wait and no relay is alive"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("fix   settle relay"), std::string::npos) << done.out;
  EXPECT_TRUE(json_has(examine({"--json"}).out, "no_relay"));
}

TEST_F(doctor_on_a_file, finds_a_share_that_fails_and_a_hot_key) {
  emit(20);
  recording_publisher destination;
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "no route"};
  };
  relay r(*db, destination);
  const auto found = [&](const std::string& code) {
    return find(doctor::examine(*db, {.hot_events = 10}), code) != nullptr;
  };
  EXPECT_TRUE(eventually([&] {
    r.run_once();
    return found("failing_share");
  }));
  EXPECT_TRUE(found("hot_lane"));
  EXPECT_FALSE(found("no_relay")) << "one is alive";
}

TEST_F(doctor_on_a_file, in_another_journal_mode_leaves_it_so) {
  db.reset();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "pragma journal_mode = delete", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  for (int i = 0; i < 2; ++i) {
    const auto done = examine({"--json"});
    EXPECT_EQ(done.code, 1) << done.out;
    EXPECT_TRUE(json_has(done.out, "not_wal")) << done.out;
  }
}

TEST_F(doctor_on_a_file, that_is_damaged_finds_it_when_asked) {
  emit(2000);
  db.reset();
  sqlite3* raw = nullptr;  // everything into the file itself, which nobody uses now
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "pragma wal_checkpoint(truncate)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  const auto pages = std::filesystem::file_size(path) / 4096;
  ASSERT_GT(pages, 40u);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (auto page = pages - 20; page < pages; ++page) {
    file.seekp(static_cast<std::streamoff>(page * 4096));
    file << std::string(4096, '\x5a');
  }
  file.close();
  const auto done = examine({"--check-integrity", "--json"});
  EXPECT_EQ(done.code, 1) << done.out;
  EXPECT_TRUE(json_has(done.out, "damaged")) << done.out;
}

TEST_F(doctor_on_a_file, sees_a_large_log_and_a_full_disk) {
  emit(100);
  doctor::findings all;
  EXPECT_TRUE(doctor::examine_file(path, {}, all));
  EXPECT_EQ(complaints(all), "");
  all.clear();
  EXPECT_TRUE(doctor::examine_file(path, {.wal_bytes = 10'000, .free_bytes = 1LL << 60}, all));
  EXPECT_NE(find(all, "wal_large"), nullptr);
  EXPECT_NE(find(all, "disk_nearly_full"), nullptr);
}

TEST_F(doctor_on_a_file, refuses_what_is_not_a_services_file) {
  EXPECT_EQ(settle_doctor({"--database", dir.file("nothing.db")}).code, 2);
  EXPECT_EQ(examine({"--table", "outbox"}).code, 2);
  sqlite::open_broker(dir.file("broker.db"), {});
  EXPECT_EQ(settle_doctor({"--database", dir.file("broker.db")}).code, 2);
  std::ofstream(dir.file("text.db")) << "certainly not a database";
  EXPECT_NE(settle_doctor({"--database", dir.file("text.db")}).out.find("not a SQLite database"),
            std::string::npos);
}

class doctor_on_a_server : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    migrate(*postgres::open(own->conninfo()));
  }
  std::optional<scratch_database> own;
};

TEST_F(doctor_on_a_server, that_is_healthy_ends_with_0_and_never_shows_the_password) {
  const auto done = settle_doctor({"--database", own->conninfo()});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_NE(done.out.find("0 problems, 0 warnings"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find(word_of(own->conninfo(), "password")), std::string::npos);
}

TEST_F(doctor_on_a_server, prints_statements_as_they_can_be_run) {
  own->run("alter sequence settle.outbox_seq cache 20");
  const auto done = settle_doctor({"--database", own->conninfo()});
  EXPECT_EQ(done.code, 1);
  const auto at = done.out.find("  fix   ");
  ASSERT_NE(at, std::string::npos) << done.out;
  own->run(done.out.substr(at + 8, done.out.find('\n', at) - at - 8));
  EXPECT_EQ(settle_doctor({"--database", own->conninfo()}).code, 0);
}

TEST_F(doctor_on_a_server, names_transactions_older_than_it_is_told) {
  pg_session sleeper(own->conninfo());
  sleeper.run("begin; select pg_current_xact_id()");
  EXPECT_FALSE(json_has(settle_doctor({"--database", own->conninfo(), "--json"}).out, "idle_in_transaction"));
  const auto done = settle_doctor({"--database", own->conninfo(), "--json", "--older-than", "0"});
  EXPECT_EQ(done.code, 0) << "a warning";
  EXPECT_TRUE(json_has(done.out, "idle_in_transaction")) << done.out;
}

TEST_F(doctor_on_a_server, judges_a_table_and_escapes_its_names) {
  own->run(
      "create table public.\"out\x1b[31mbox\" (id bigserial primary key, event_id uuid unique, key text)");
  const auto done = settle_doctor({"--database", own->conninfo(), "--table", "public.\"out\x1b[31mbox\""});
  EXPECT_EQ(done.code, 1) << done.out;
  EXPECT_NE(done.out.find("loses late commits"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(settle_doctor({"--database", own->conninfo(), "--table", "nothing"}).code, 2);
}

TEST_F(doctor_on_a_server, behind_a_pooler_says_so) {
  if (const auto missing = pgbouncer_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const auto done =
      settle_doctor({"--database", with(pgbouncer_conninfo(), "dbname=" + own->name()), "--json"});
  EXPECT_EQ(done.code, 0) << done.out;
  EXPECT_TRUE(json_has(done.out, "pooler")) << done.out;
  EXPECT_FALSE(json_has(done.out, "not_checked")) << done.out;
}

TEST_F(doctor_on_a_server, that_is_away_ends_with_3) {
  EXPECT_EQ(settle_doctor({"--database", with(own->conninfo(), "port=1")}).code, 3);
}

}  // namespace
}  // namespace settle::test
