// All services of the daemon's file at a glance, also where one of them hangs.
#include <chrono>
#include <regex>

#include "settle/sqlite.hpp"
#include "support/cli_services.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::has;
using test::silent_server;
using test::words;
using cli_status = test::cli_services;

// Proves D7
TEST_F(cli_status, status_shows_all_services_and_that_nothing_needs_a_person) {
  make_three();
  const auto status = call({"status"});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_TRUE(std::regex_search(
      status.out,
      std::regex(
          "service +store +pending +oldest +failed +parked +dead letters +held sagas +relays +state\n")))
      << status.out;
  for (const auto* name : {"billing", "orders", "stock"})
    EXPECT_TRUE(std::regex_search(
        status.out, std::regex("\n?" + std::string(name) + " +.*" + name + "\\.db +0 +0 +0 +0 +0 +0 +ok\n")))
        << status.out;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("main +.*main\\.db +0 +0 +0 +ok\n"))) << status.out;
  EXPECT_TRUE(status.out.ends_with("\nnothing needs a person\n")) << status.out;
}

// Proves D7
TEST_F(cli_status, status_says_of_each_service_what_needs_a_person_and_what_to_type) {
  make_three();
  publish_to("orders");
  std::filesystem::remove(dir.file("stock.db"));
  const auto db = sqlite::open(dir.file("billing.db"));
  auto tx = db->begin();
  tx.execute(
      "insert into settle_dlq_events (consumer, consumer_version, status, reason, error, attempts, history, "
      "failed_at, blocks_key, topic, message_key, log, position, message_id, source, event_type, subject, "
      "content_type, event_time, extensions, payload) values ('mail', '', 'NEW', 'exhausted', '', 5, '[]', "
      "0, 0, "
      "'orders', 'c', 'orders/0', 1, 'm', '', 'order.placed', '', '', 0, '', x'')");
  tx.commit();
  const auto status = call({"status"});
  EXPECT_EQ(status.code, 3) << "one could not be read";
  EXPECT_TRUE(
      std::regex_search(status.out, std::regex("orders +.* 1 +[0-9.]+ s +0 +0 +0 +0 +0 +attention\n")))
      << status.out;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("stock +.*stock.db +unknown\n"))) << status.out;
  EXPECT_TRUE(has(status.out, "\nbilling: mail has 1 dead letter: see `settle dlq list --consumer mail" +
                                  typed("billing") +
                                  "`\norders: 1 pending event, but no relay is alive: run "
                                  "`settle relay" +
                                  typed("orders") + "`\nstock: unknown: there is no service database"))
      << status.out;
  EXPECT_TRUE(has(status.out, "create it with `settle migrate" + typed("stock") + "`")) << status.out;
  const auto told = boost::json::parse(call({"status", "--json"}).out);
  EXPECT_EQ(told.at_pointer("/services/orders/state").as_string(), "attention");
  EXPECT_EQ(told.at_pointer("/services/orders/outbox/pending").as_int64(), 1);
  EXPECT_TRUE(has(std::string(told.at_pointer("/services/orders/attention/0").as_string()), typed("orders")));
  EXPECT_EQ(told.at_pointer("/services/stock/state").as_string(), "unknown");
  EXPECT_EQ(told.at_pointer("/services/stock/error/code").as_string(), "schema_missing");
  EXPECT_EQ(told.at_pointer("/brokers/main/state").as_string(), "ok");
}

// Proves D7
TEST_F(cli_status, a_server_that_never_answers_is_unknown_and_holds_up_nobody) {
  const silent_server silent;
  make_three();
  write_config("[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n" + service_table("billing") +
               "[service.stock]\ndatabase = \"" + silent.conninfo() + "\"\n[service.store]\ndatabase = \"" +
               silent.conninfo() + " application_name=other\"\n");
  const auto began = std::chrono::steady_clock::now();
  const auto status = call({"status"});
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s) << "2 s, and room for a machine that is busy";
  EXPECT_EQ(status.code, 3);
  EXPECT_TRUE(std::regex_search(status.out, std::regex("billing +.* ok\n"))) << status.out;
  EXPECT_TRUE(
      std::regex_search(status.out, std::regex("stock +database stock at 127.0.0.1:[0-9]+ +unknown\n")))
      << status.out;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("\nstock: unknown: .*; see that it runs")))
      << status.out;
  EXPECT_FALSE(has(status.out + status.err, "open-sesame"));
  const auto told = call({"status", "--json"});
  EXPECT_EQ(boost::json::parse(told.out).at_pointer("/services/store/error/code").as_string(),
            "store_unavailable");
}

TEST_F(cli_status, secrets_of_the_file_are_in_no_output_and_no_error) {
  const silent_server silent;
  test::write_file(dir.file("conninfo"), silent.conninfo());
  write_config("[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n[service.inline]\ndatabase = \"" +
               silent.conninfo() + "\"\n[service.kept]\ndatabase_file = \"" + dir.file("conninfo") +
               "\"\nbusy_timeout = \"never\"\n");
  EXPECT_FALSE(has(call({"status"}).err, "open-sesame"));
  write_config("[broker.main]\nurl = \"" + dir.file("main.db") +
               "\"\n[service.told]\ndatabase_env = \"STOCK\"\n[service.kept]\ndatabase = "
               "\"postgresql://me:open-sesame@127.0.0.1:1/kept\"\n");
  for (const words& command : {words{"status"},
                               {"status", "--json"},
                               {"doctor"},
                               {"doctor", "--json"},
                               {"migrate"},
                               {"verify", "--service", "kept"},
                               {"dlq", "list", "--service", "kept"}}) {
    const auto done = call(command, {"STOCK=host=127.0.0.1 port=1 dbname=told password=open-sesame"});
    EXPECT_FALSE(has(done.out + done.err, "open-sesame")) << done.out << done.err;
    EXPECT_EQ(done.code, 3) << command.front() << done.out << done.err;
  }
}

}  // namespace
}  // namespace settle
