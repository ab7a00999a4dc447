// The command line as a user meets it: the real program, its output and its exit codes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

#include "settle/claims.hpp"
#include "settle/driver/broker.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"
#include "support/cli_program.hpp"

namespace settle {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::string_literals;

class cli : public test::cli_program {};
using test::content_of;
using test::expect_json_error;
using test::write_file;

// Proves O12
TEST_F(cli, restores_a_backup_and_publishes_again_what_it_holds) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  ASSERT_EQ(settle({"publish", "orders", "order.placed", "--key", "1"}).code, 0);
  ASSERT_EQ(settle({"relay", "--once"}).code, 0);
  const auto saved = settle({"backup", dir.file("monday")});
  ASSERT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(settle({"backup", dir.file("monday")}).code, 2) << "it never overwrites";
  EXPECT_EQ(settle({"restore", dir.file("monday")}).code, 2) << "the files exist";
  fs::remove_all(data());
  const auto restored = settle_json({"restore", dir.file("monday")});
  EXPECT_EQ(restored.at("generation").as_int64(), 2);
  EXPECT_EQ(settle_json({"status"}).at_pointer("/service/outbox/pending").as_int64(), 1);
  EXPECT_EQ(settle({"relay", "--once"}).out, "published 1 event\n");
  EXPECT_EQ(settle({"restore", dir.file("nothing")}).code, 2);
}

// Proves O1, O2, O8
TEST_F(cli, takes_an_event_from_publish_to_tail) {
  EXPECT_EQ(settle({"migrate"}).code, 0);
  const auto published = settle({"publish", "orders", "order.placed", "--key", "42", "--aggregate-type",
                                 "order", "--payload", R"({"total":1})", "--header", "tenant=acme"});
  ASSERT_EQ(published.code, 0) << published.err;
  const auto id = published.out.substr(0, 36);
  ASSERT_TRUE(event_id::parse(id)) << published.out;

  auto status = settle_json({"status"});
  EXPECT_EQ(status.at_pointer("/service/outbox/pending").as_int64(), 1);
  EXPECT_GE(status.at_pointer("/service/outbox/oldest_pending_age_seconds").as_double(), 0.0);
  EXPECT_EQ(settle({"relay", "--once"}).out, "published 1 event\n");
  EXPECT_EQ(settle({"relay", "--once"}).out, "nothing to publish\n");
  status = settle_json({"status"});
  EXPECT_EQ(status.at_pointer("/service/outbox/pending").as_int64(), 0);
  EXPECT_EQ(status.at_pointer("/service/outbox/published").as_int64(), 1);
  EXPECT_TRUE(status.at_pointer("/service/outbox/oldest_pending_age_seconds").is_null());
  EXPECT_EQ(status.at_pointer("/broker/topics/0/messages").as_int64(), 1);

  const auto event = settle_json({"tail", "orders"});
  EXPECT_EQ(event.at("specversion").as_string(), "1.0");
  EXPECT_EQ(event.at("id").as_string(), id);
  EXPECT_EQ(event.at("type").as_string(), "order.placed");
  EXPECT_EQ(event.at("subject").as_string(), "order/42");
  EXPECT_EQ(event.at("partitionkey").as_string(), "42");
  EXPECT_EQ(event.at("tenant").as_string(), "acme");
  EXPECT_EQ(event.at("data"), json::parse(R"({"total":1})"));
  const auto text = settle({"tail", "orders"}).out;
  EXPECT_NE(text.find("order.placed  key 42"), std::string::npos) << text;
  EXPECT_NE(text.find(R"({"total":1})"), std::string::npos) << text;
}

// Messages that an older relay has stored, or another program: what the message is stays what it is. Proves
// O8
TEST_F(cli, tails_attributes_that_are_named_like_the_messages_own_under_other_names) {
  settle({"migrate"});
  message m;
  m.id = "1";
  m.source = "s";
  m.type = "t";
  m.topic = "orders";
  m.extensions = {{"id", "forged"}, {"data", "forged"}, {"settle-dlq-reason", "exhausted"}};
  m.payload = "{}";
  m.content_type = "application/json";
  const auto broker = sqlite::open_broker(data() + "/broker.db", {});
  ASSERT_EQ(broker->publishing().publish(std::span(&m, 1))[0].status, publish_status::confirmed);
  const auto event = settle_json({"tail", "orders"});
  EXPECT_EQ(event.at("id").as_string(), "1");
  EXPECT_EQ(event.at("data"), json::object());
  EXPECT_EQ(event.at("headerid").as_string(), "forged");
  EXPECT_EQ(event.at("headerdata").as_string(), "forged");
  EXPECT_EQ(event.at("settledlqreason").as_string(), "exhausted");
}

// Proves O2
TEST_F(cli, keeps_the_id_that_publish_is_given) {
  settle({"migrate"});
  const auto id = "01890a5d-ac96-774b-bcce-b302099a8057"s;
  EXPECT_EQ(settle({"publish", "orders", "order.placed", "--id", id}).out, id + "\n");
  EXPECT_EQ(settle({"publish", "orders", "order.placed", "--id", "42"}).code, 2);
}

TEST_F(cli, passes_binary_payloads_from_standard_input_unchanged) {
  settle({"migrate"});
  const auto bytes = "a\0\xff\xfe"s;
  EXPECT_EQ(settle_with_input(
                bytes, {"publish", "scans", "page", "--content-type", "image/png", "--payload-file", "-"})
                .code,
            0);
  EXPECT_EQ(settle_with_input("line one\nline two\n", {"publish", "scans", "note", "--content-type",
                                                       "text/plain", "--payload-file", "-"})
                .code,
            0);
  settle({"relay", "--once"});
  const auto text = settle({"tail", "scans"}).out;
  EXPECT_NE(text.find("<4 bytes>"), std::string::npos) << text;
  EXPECT_NE(text.find("    line one\n    line two\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_EQ(settle_json({"tail", "scans", "--from-start", "--max", "1"}).at("data_base64").as_string(),
            "YQD//g==");
  EXPECT_EQ(settle_json({"tail", "scans", "--last", "1"}).at("data").as_string(), "line one\nline two\n");
}

TEST_F(cli, passes_json_on_without_rounding_and_on_one_line) {
  settle({"migrate"});
  settle({"publish", "status", "relay", "--payload", "[12345678901234567890123,\n1]"});
  {
    const auto db = sqlite::open(data() + "/settle.db");
    auto tx = db->begin();
    publish(tx, event{.topic = "status",
                      .type = "relay",
                      .key = "k",
                      .payload = "{not json"});  // a program may say anything
    tx.commit();
  }
  settle({"relay", "--once"});
  const auto out = settle({"tail", "status", "--json"}).out;
  EXPECT_NE(out.find("\"data\":[12345678901234567890123, 1]}\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\"data_base64\":\"e25vdCBqc29u\"}\n"), std::string::npos) << out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
  settle({"publish", "odd", "relay", "--payload", "{}", "--content-type", "Application/Vnd.Shop+JSON; v=1"});
  settle({"relay", "--once"});
  EXPECT_TRUE(settle_json({"tail", "odd", "--from-start"}).at("data").is_object()) << "types have no case";
}

TEST_F(cli, never_lets_stored_text_control_the_terminal) {
  settle({"migrate"});
  settle({"publish", "orders", "evil", "--content-type", "text/plain", "--payload", "\x1b]0;owned\x07"});
  settle({"relay", "--once"});
  EXPECT_EQ(settle({"tail", "orders"}).out.find('\x1b'), std::string::npos);
}

TEST_F(cli, tails_the_last_messages_in_order_over_all_partitions) {
  settle({"migrate"});
  for (int i = 0; i < 12; ++i)
    settle({"publish", "orders", "t", "--key", std::to_string(i), "--payload", std::to_string(i)});
  settle({"relay", "--once"});
  const auto payloads = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"tail", "orders", "--json"});
    std::string found;
    std::istringstream lines(settle(arguments).out);
    for (std::string line; std::getline(lines, line);)
      found += std::to_string(json::parse(line).at("data").as_int64()) + " ";
    return found;
  };
  EXPECT_EQ(payloads({}), "2 3 4 5 6 7 8 9 10 11 ");
  EXPECT_EQ(payloads({"--last", "3"}), "9 10 11 ");
  EXPECT_EQ(payloads({"--last", "0"}), "");
  EXPECT_EQ(payloads({"--from-start", "--max", "4"}), "0 1 2 3 ");
}

// Proves O1
TEST_F(cli, relays_and_follows_until_it_is_told_to_stop) {
  settle({"migrate"});
  settle({"publish", "orders", "first"});
  settle({"relay", "--once"});
  const auto relay = start({"relay"}, "relay");
  const auto tail = start({"tail", "orders", "--follow", "--json"}, "tail");
  ASSERT_TRUE(has_lines("tail", 1));
  settle({"publish", "orders", "second"});
  EXPECT_TRUE(has_lines("tail", 2));
  EXPECT_TRUE(has_lines("relay", 2));
  EXPECT_EQ(settle_json({"status"}).at_pointer("/service/relays/alive").as_int64(), 1);
  kill(tail, SIGINT);
  kill(relay, SIGTERM);
  EXPECT_EQ(end_of(tail, "tail").code, 0);
  const auto relayed = end_of(relay, "relay");
  EXPECT_EQ(relayed.code, 0) << relayed.err;
  EXPECT_NE(relayed.out.find("stopped; 1 event published\n"), std::string::npos) << relayed.out;
  EXPECT_EQ(settle_json({"status"}).at_pointer("/service/relays/alive").as_int64(), 0)
      << "its lease was given back";
}

// Proves O2
TEST_F(cli, shows_groups_with_their_lag_and_what_needs_attention) {
  settle({"migrate"});
  {
    const auto broker = sqlite::open_broker(data() + "/broker.db");
    broker->subscribe({.group = "warehouse", .topics = {"orders"}});
  }
  for (int i = 0; i < 3; ++i) settle({"publish", "orders", "order.placed", "--key", std::to_string(i)});
  EXPECT_NE(settle({"status"}).out.find("! 3 pending events, but no relay is alive"), std::string::npos);
  settle({"relay", "--once"});
  const auto status = settle_json({"status"});
  EXPECT_EQ(status.at_pointer("/broker/groups/0/group").as_string(), "warehouse");
  EXPECT_EQ(status.at_pointer("/broker/groups/0/lag").as_int64(), 3);
  EXPECT_EQ(status.at_pointer("/broker/groups/0/members_alive").as_int64(), 0);
  EXPECT_NE(settle({"status"}).out.find("! group warehouse has 3 messages"), std::string::npos);
}

// Proves V2
TEST_F(cli, verify_ends_with_1_when_an_effect_happened_twice) {
  settle({"migrate"});
  const auto db = sqlite::open(data() + "/settle.db");
  const auto apply = [&] {
    auto tx = db->begin();
    note_applied(tx, "warehouse", {.topic = "orders", .key = "c1", .subject = "order-1"});
    tx.commit();
  };
  {
    auto tx = db->begin();
    const auto id = publish(tx, event{.topic = "orders", .type = "order.placed", .key = "c1"});
    note_committed(tx, {.topic = "orders", .key = "c1", .subject = "order-1", .event = id});
    tx.commit();
  }
  apply();
  const auto clean = settle({"verify"});
  EXPECT_EQ(clean.code, 0) << clean.out;
  EXPECT_TRUE(clean.out.ends_with("\n1 committed, 1 applied, 0 lost, 0 doubled\n")) << clean.out;
  const auto file = data() + "/settle.db";
  EXPECT_EQ(settle({"verify", "--service", file, "--service", file}).code, 0)
      << "a file named twice counts once";

  apply();
  const auto found = settle({"verify"});
  EXPECT_EQ(found.code, 1);
  EXPECT_NE(found.out.find("doubled: order-1 by warehouse: applied 2 times"), std::string::npos) << found.out;
  EXPECT_TRUE(found.out.ends_with("\n1 committed, 1 applied, 0 lost, 1 doubled\n")) << found.out;
  const auto report = json::parse(settle({"verify", "--json"}).out);
  EXPECT_FALSE(report.at("clean").as_bool());
  EXPECT_EQ(report.at_pointer("/findings/0/kind").as_string(), "doubled");
  EXPECT_TRUE(
      json::parse(settle({"verify", "--json", "--examples", "0"}).out).at("findings").as_array().empty());
}

// Proves V2
TEST_F(cli, verify_ends_with_1_when_an_event_was_lost) {
  settle({"migrate"});
  const auto db = sqlite::open(data() + "/settle.db");
  auto tx = db->begin();
  note_committed(tx, {.topic = "orders", .key = "c1", .subject = "order-1", .event = event_id(uuid({1}))});
  tx.commit();
  const auto found = settle({"verify"});
  EXPECT_EQ(found.code, 1);
  EXPECT_TRUE(found.out.ends_with("\n1 committed, 0 applied, 1 lost, 0 doubled\n")) << found.out;
}

TEST_F(cli, refuses_names_and_payloads_that_cannot_be_published) {
  settle({"migrate"});
  EXPECT_EQ(settle({"publish", "\xc3(", "t"}).code, 2);
  EXPECT_EQ(settle({"publish", "", "t"}).code, 2);
  EXPECT_EQ(settle({"publish", "a\nb", "t"}).code, 2);
  EXPECT_EQ(settle({"publish", "a", "t", "--header", "Bad=1"}).code, 2);
  EXPECT_EQ(settle({"publish", "a", "t", "--header", "novalue"}).code, 2);
  EXPECT_EQ(settle({"publish", "a", "t", "--header", "x=1", "--header", "x=2"}).code, 2);
  EXPECT_EQ(settle({"publish", "a", "t", "--payload-file", dir.file("missing")}).code, 2);
  EXPECT_EQ(settle({"publish", "a", "t", "--payload", "x", "--payload-file", "-"}).code, 2);
  expect_json_error(settle({"publish", "\xc3(", "t", "--json"}), "invalid_name", false);
  const std::string most(1024 * 1024, 'x');
  EXPECT_EQ(
      settle_with_input(most, {"publish", "a", "t", "--content-type", "text/plain", "--payload-file", "-"})
          .code,
      0);
  const auto large = settle_with_input(most + "x", {"publish", "a", "t", "--payload-file", "-", "--json"});
  EXPECT_EQ(large.code, 2);
  expect_json_error(large, "payload_too_large", false);
  EXPECT_EQ(settle_json({"status"}).at_pointer("/service/outbox/pending").as_int64(), 1);
}

TEST_F(cli, creates_nothing_where_nothing_was_migrated) {
  const std::vector<std::vector<std::string>> commands{
      {"status"}, {"tail", "orders"}, {"verify"}, {"publish", "orders", "t"}, {"relay", "--once"}};
  for (const auto& command : commands) {
    const auto done = settle(command);
    EXPECT_EQ(done.code, 2) << command[0];
    EXPECT_TRUE(done.err.starts_with("settle: there is no ")) << done.err;
    EXPECT_NE(done.err.find("`settle migrate --data "), std::string::npos) << done.err;
    EXPECT_FALSE(fs::exists(data())) << command[0];
  }
  expect_json_error(settle({"status", "--json"}), "schema_missing", false);
}

TEST_F(cli, migrates_once_and_keeps_the_folder_private) {
  EXPECT_NE(settle({"migrate"}).out.find("settle.db: created"), std::string::npos);
  struct stat about{};
  ASSERT_EQ(stat(data().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700U);
  const auto again = settle_json({"migrate"});
  EXPECT_EQ(again.at_pointer("/service/migrations_applied").as_int64(), 0);
  EXPECT_FALSE(again.at_pointer("/broker/created").as_bool());
}

TEST_F(cli, leaves_foreign_files_as_they_are) {
  settle({"migrate"});
  const auto foreign = dir.file("notes.txt");
  write_file(foreign, "not a database, but somebody's notes");
  const auto done = settle({"status", "--database", foreign});
  EXPECT_EQ(done.code, 2);
  EXPECT_EQ(done.err, "settle: " + foreign + " is not a SQLite database\n");
  EXPECT_FALSE(fs::exists(foreign + "-queue"));

  const auto swapped = settle({"tail", "orders", "--broker", data() + "/settle.db"});
  EXPECT_EQ(swapped.code, 2);
  EXPECT_NE(swapped.err.find("is a service database, not a broker file"), std::string::npos) << swapped.err;
  EXPECT_EQ(settle({"migrate", "--database", data() + "/broker.db", "--broker", dir.file("b.db")}).code, 2);
  EXPECT_EQ(settle({"migrate", "--database", data() + "/broker.db"}).code, 2);
  EXPECT_EQ(settle({"status", "--database", data()}).code, 2);
}

TEST_F(cli, reads_while_another_process_holds_the_write_lock) {
  settle({"migrate"});
  const auto db = sqlite::open(data() + "/settle.db");
  const auto writing = db->begin();
  EXPECT_EQ(settle({"status"}).code, 0);
  EXPECT_EQ(settle({"verify"}).code, 0);
}

// Proves O1
TEST_F(cli, relay_once_ends_with_3_when_it_is_stopped_before_everything_is_published) {
  settle({"migrate"});
  const auto db = sqlite::open(data() + "/settle.db");
  const auto broker = sqlite::open_broker(data() + "/broker.db");
  relay owner(*db, broker->publishing());
  owner.run_once();  // now it owns every share, and does nothing with them
  settle({"publish", "orders", "t"});
  const auto waiting = start({"relay", "--once", "--json"}, "relay");
  const auto relays = [&] { return settle_json({"status"}).at_pointer("/service/relays/alive").as_int64(); };
  for (int i = 0; i < 500 && relays() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(waiting, SIGTERM);
  const auto stopped = end_of(waiting, "relay");
  EXPECT_EQ(stopped.code, 3);
  expect_json_error(stopped, "cancelled", true);
  EXPECT_NE(stopped.err.find("1 event still waits"), std::string::npos) << stopped.err;
}

TEST_F(cli, names_the_known_topics_when_one_is_unknown) {
  settle({"migrate"});
  EXPECT_NE(settle({"tail", "orders"}).err.find("has none yet"), std::string::npos);
  settle({"publish", "orders", "t"});
  settle({"publish", "payments", "t"});
  settle({"relay", "--once"});
  const auto done = settle({"tail", "order"});
  EXPECT_EQ(done.code, 2);
  EXPECT_EQ(done.err, "settle: there is no topic 'order'; known topics: orders, payments\n");
}

TEST_F(cli, explains_itself) {
  const auto help = settle({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const auto* word :
       {"Exit codes:", "Examples:", "SETTLE_DATA", "migrate", "publish", "relay", "status", "tail", "verify"})
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  EXPECT_NE(settle({"tail", "--help"}).out.find("Default: 10"), std::string::npos);
  EXPECT_TRUE(settle({"--version"}).out.starts_with("settle "));
  EXPECT_EQ(settle({}).code, 2);
  EXPECT_EQ(settle({"stats"}).err,
            "settle: there is no command 'settle stats'; did you mean status? See `settle --help`\n");
  EXPECT_EQ(settle({"tail", "orders", "--last", "many"}).code, 2);
  EXPECT_EQ(settle({"migrate", "--unknown"}).code, 2);
  expect_json_error(settle({"stats", "--json"}), "usage", false);
}

// Proves O3, V2
TEST_F(cli, lists_what_the_broker_rejects_and_requeues_it) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  EXPECT_EQ(settle({"outbox", "failed"}).out, "no event has failed\n");
  const auto id = settle({"publish", "orders", "order.placed", "--key", "42"}).out.substr(0, 36);
  const auto in_database = [&](const std::string& sql) {
    const auto db = sqlite::open(data() + "/settle.db");
    auto tx = db->begin();
    tx.execute(sql);
    tx.commit();
  };
  in_database("update settle_outbox set topic = 'two' || char(10) || 'lines'");  // as no publish() would
  const auto relayed = settle({"relay", "--once"});
  EXPECT_EQ(relayed.code, 2) << relayed.err;
  EXPECT_NE(relayed.err.find("settle outbox failed"), std::string::npos) << relayed.err;

  const auto status = settle_json({"status"});
  EXPECT_EQ(status.at_pointer("/service/outbox/failed"), 1);
  EXPECT_EQ(status.at_pointer("/service/outbox/pending"), 0);
  EXPECT_NE(settle({"status"}).out.find("1 event was given up"), std::string::npos);
  const auto failed = settle({"outbox", "failed"});
  EXPECT_NE(failed.out.find(id), std::string::npos) << failed.out;
  EXPECT_NE(failed.out.find("given up after 5 attempts"), std::string::npos) << failed.out;
  const auto verified = settle({"verify"});
  EXPECT_EQ(verified.code, 0) << "nothing is lost";
  EXPECT_NE(verified.out.find("were given up: see `settle outbox failed --data " + data() + "`"),
            std::string::npos)
      << verified.out;
  EXPECT_NE(verified.out.find("failed: " + id), std::string::npos) << verified.out;
  EXPECT_TRUE(verified.out.ends_with(", 1 failed\n")) << verified.out;
  EXPECT_EQ(settle_json({"verify"}).at("failed"), 1);
  EXPECT_EQ(settle_json({"outbox", "failed"}).as_array().at(0).at("id").as_string(), id);

  EXPECT_EQ(settle({"outbox", "requeue"}).code, 2) << "neither ids nor --all";
  EXPECT_EQ(settle({"outbox", "requeue", "01890a5d-ac96-774b-bcce-b302099a8057"}).code, 2);
  in_database("update settle_outbox_held set topic = 'orders'");
  EXPECT_EQ(settle_json({"outbox", "requeue", id}).at("requeued"), 1);
  EXPECT_EQ(settle({"relay", "--once"}).out, "published 1 event\n");
  EXPECT_EQ(settle_json({"status"}).at_pointer("/service/outbox/failed"), 0);
}

// Proves I7
TEST_F(cli, lists_claims_of_unknown_outcome_and_decides_them) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  EXPECT_EQ(settle({"keys", "unknown"}).out, "every claim is held, released or completed\n");
  const auto db = sqlite::open(data() + "/settle.db");
  const auto keys = open_claims(*db);
  const auto claim = [&](const char* key) {
    return keys->claim({.who = {"shop", "ann", key}, .lease = std::chrono::milliseconds(1)}).token.run.text();
  };
  const auto done = claim("done"), not_done = claim("not done");
  while (unknown_claims(*db).size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_NE(settle({"keys", "unknown"}).out.find(done + "  shop  claimed "), std::string::npos);
  EXPECT_EQ(settle_json({"keys", "unknown"}).as_array().size(), 2u);

  EXPECT_EQ(settle({"keys", "resolve", done}).code, 2) << "neither --release nor --status";
  EXPECT_EQ(settle({"keys", "resolve", "01890a5d-ac96-774b-bcce-b302099a8057", "--release"}).code, 2);
  EXPECT_EQ(settle({"keys", "resolve", done, "--status", "201", "--body", "{}"}).code, 0);
  EXPECT_EQ(settle({"keys", "resolve", not_done, "--release"}).code, 0);
  EXPECT_EQ(settle({"keys", "resolve", not_done, "--release"}).code, 2) << "it was decided";
  const auto again = keys->claim({.who = {"shop", "ann", "done"}});
  EXPECT_EQ(again.outcome, claim_outcome::completed);
  EXPECT_EQ(again.what, (answer{.status = 201, .body = "{}"}));
  EXPECT_EQ(keys->claim({.who = {"shop", "ann", "not done"}}).outcome, claim_outcome::claimed);
}

}  // namespace
}  // namespace settle
