// The command line where the daemon's file names the stores: one service of it, or all of them.
#include "support/cli_services.hpp"

#include <regex>
#include <sstream>

namespace settle {
namespace {

using test::has;
using test::words;
using cli_services = test::cli_services;

TEST_F(cli_services, a_command_works_on_the_service_that_is_named) {
  make_three();
  publish_to("orders");
  const auto pending = [&](const std::string& service) {
    const auto done = call({"status", "--json", "--service", service});
    return boost::json::parse(done.out).at_pointer("/service/outbox/pending").as_int64();
  };
  EXPECT_EQ(pending("orders"), 1);
  EXPECT_EQ(pending("stock"), 0);
  EXPECT_EQ(call({"relay", "--once", "--service", "orders"}).out, "published 1 event\n");
  EXPECT_TRUE(has(call({"tail", "orders", "--service", "stock"}).out, "order.placed"))
      << "they share a broker";
  EXPECT_TRUE(has(call({"tail", "orders"}).out, "order.placed")) << "there is only one";
}

TEST_F(cli_services, says_which_services_there_are_if_none_is_named_and_which_was_probably_meant) {
  make_three();
  expect_refused({"dlq", "list"},
                 config() + " has 3 services: billing, orders, stock; name one with --service");
  expect_refused({"dlq", "list", "--service", "ordres"},
                 config() + " has no service 'ordres'; did you mean orders?");
  const auto without_file = bare({"status", "--service", "orders"});
  EXPECT_EQ(without_file.code, 2);
  EXPECT_EQ(without_file.err,
            "settle: --service names a service of the daemon's file; name that too, with --config FILE\n");
}

TEST_F(cli_services, refuses_a_file_and_stores_that_are_named_beside_it) {
  make_three();
  expect_refused({"status", "--service", "orders", "--database", "shop.db"},
                 "--config and --database both name the stores; leave out one of them");
  expect_refused({"tail", "orders", "--broker", "b.db"},
                 "--config and --broker both name the stores; leave out one of them");
}

TEST_F(cli_services, the_only_service_of_a_file_needs_no_name) {
  write_config(service_table("orders") + "[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n");
  ASSERT_EQ(call({"migrate"}).code, 0);
  EXPECT_EQ(call({"publish", "orders", "order.placed"}).code, 0);
  EXPECT_EQ(call({"relay", "--once"}).out, "published 1 event\n");
}

TEST_F(cli_services, a_file_of_the_short_form_names_its_stores) {
  write_config("data = \"" + data() + "\"\ndatabase = \"" + dir.file("shop.db") + "\"\n");
  const auto made = call({"migrate"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, dir.file("shop.db"))) << made.out;
  EXPECT_TRUE(has(made.out, data() + "/broker.db")) << made.out;
  EXPECT_EQ(call({"publish", "orders", "order.placed"}).code, 0);
  const auto status = call({"status"});
  EXPECT_TRUE(has(status.out, "run `settle relay --config " + config() + "`")) << status.out;
  EXPECT_EQ(call({"verify"}).code, 0);
  expect_refused(
      {"status", "--service", "orders"},
      config() + " has no tables [service.NAME], only one service without a name; leave out --service");
}

TEST_F(cli_services, file_and_service_may_stand_in_the_environment) {
  make_three();
  const words variables{"SETTLE_CONFIG=" + config(), "SETTLE_SERVICE=orders"};
  ASSERT_EQ(bare({"publish", "orders", "order.placed"}, variables).code, 0);
  const auto status = bare({"status"}, variables);
  EXPECT_TRUE(has(status.out, "Service  " + dir.file("orders.db"))) << status.out << status.err;
  EXPECT_TRUE(has(status.out, "run `settle relay`")) << "the environment says the rest: " << status.out;
  const auto by_hand =
      bare({"migrate", "--database", dir.file("own.db"), "--broker", dir.file("b.db")}, variables);
  EXPECT_EQ(by_hand.code, 0) << by_hand.err;
  EXPECT_TRUE(has(by_hand.out, dir.file("own.db"))) << "arguments win: " << by_hand.out;
}

TEST_F(cli_services, hints_repeat_file_and_service) {
  make_three();
  publish_to("orders");
  const auto status = call({"status", "--service", "orders"});
  EXPECT_TRUE(has(status.out, "run `settle relay" + typed("orders") + "`")) << status.out;
  const auto missing = call({"dlq", "show", "7", "--service", "orders"});
  EXPECT_TRUE(has(missing.err, "see `settle dlq list" + typed("orders") + "`")) << missing.err;
}

TEST_F(cli_services, a_file_that_is_wrong_is_told_in_one_line_with_its_places) {
  write_config("[service.orders]\ndatabse = \"x\"\n[service.stock]\nbroker = \"nowhere\"\n");
  const auto done = call({"status"});
  EXPECT_EQ(done.code, 2);
  EXPECT_TRUE(has(done.err, config() + ":2: unknown key 'service.orders.databse';")) << done.err;
  EXPECT_TRUE(has(done.err, config() + ":4: ")) << done.err;
  EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
  EXPECT_EQ(bare({"status", "--config", dir.file("none.toml")}).code, 2);
}

// Every command, and what to give it so that it succeeds on a fresh service.
const std::vector<words> every_command{
    {"migrate"},          {"publish", "orders", "order.placed", "--key", "1"},
    {"relay", "--once"},  {"tail", "orders"},
    {"status"},           {"doctor"},
    {"verify"},           {"dlq", "list"},
    {"dlq", "stats"},     {"keys", "unknown"},
    {"saga", "list"},     {"lock", "list"},
    {"outbox", "failed"}, {"webhook", "list"},
    {"group", "list"}};

TEST_F(cli_services, every_command_takes_file_and_service_before_and_after_its_name) {
  write_config(service_table("billing", "broker = \"main\"\n") +
               service_table("orders", "broker = \"main\"\n") + "[broker.main]\nurl = \"" +
               dir.file("main.db") + "\"\n[broker.other]\nurl = \"" + dir.file("other.db") + "\"\n");
  ASSERT_EQ(call({"migrate"}).code, 0);
  for (const auto& command : every_command) {
    words before{"--config", config(), "--service", "orders"}, after = command;
    before.insert(before.end(), command.begin(), command.end());
    after.insert(after.end(), {"--config", config(), "--service", "orders"});
    for (const auto& arguments : {before, after}) {
      const auto done = bare(arguments);
      EXPECT_EQ(done.code, 0) << command.front() << ": " << done.err;
    }
    if (command.front() == "migrate" || command.front() == "status" || command.front() == "doctor" ||
        command.front() == "verify")
      continue;
    const auto unnamed = call(command);
    EXPECT_EQ(unnamed.code, 2) << command.front();
    EXPECT_TRUE(has(unnamed.err, "has 2 services: billing, orders; name one with --service")) << unnamed.err;
  }
  const auto saved = call({"backup", dir.file("monday"), "--service", "orders"});
  EXPECT_EQ(saved.code, 0) << saved.err;
  for (const auto* name : {"orders.db", "main.db"})
    for (const auto* beside : {"", "-wal", "-shm", "-queue"})
      std::filesystem::remove(dir.file(name) + beside);
  const auto restored = call({"restore", dir.file("monday"), "--service", "orders"});
  EXPECT_EQ(restored.code, 0) << restored.err;
  EXPECT_TRUE(has(restored.out, dir.file("orders.db"))) << restored.out;
}

// So that a command that is added gets its row in the table above.
TEST_F(cli_services, the_table_of_commands_is_complete) {
  const auto help = bare({"--help"}).out;
  const auto list = help.substr(help.find("\nCommands:\n") + 11);
  std::istringstream lines(list.substr(0, list.find("\n\n")));
  for (std::string line; std::getline(lines, line);) {
    const auto name = line.substr(2, line.find(' ', 2) - 2);
    if (name == "help" || name == "serve" || name == "backup" || name == "restore") continue;
    EXPECT_TRUE(std::ranges::any_of(every_command, [&](const auto& one) { return one.front() == name; }))
        << name;
  }
}

TEST_F(cli_services, a_relay_brings_events_where_the_routes_of_the_file_say) {
  write_config(
      service_table("orders",
                    "broker = \"main\"\n[[service.orders.route]]\ntopic = \"audit.*\"\nbroker = \"other\"\n"
                    "as = \"trail.*\"\n") +
      "[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n[broker.other]\nurl = \"" +
      dir.file("other.db") + "\"\n");
  ASSERT_EQ(call({"migrate"}).code, 0);
  ASSERT_EQ(call({"publish", "orders", "order.placed"}).code, 0);
  ASSERT_EQ(call({"publish", "audit.login", "user.came"}).code, 0);
  EXPECT_EQ(call({"relay", "--once"}).out, "published 2 events\n");
  EXPECT_TRUE(has(bare({"tail", "trail.login", "--broker", dir.file("other.db")}).out, "user.came"));
  EXPECT_TRUE(has(call({"tail", "orders"}).out, "order.placed"));
}

TEST_F(cli_services, serve_hands_the_file_to_the_daemon) {
  test::write_file(dir.file("settled"), "#!/bin/sh\necho \"$@\"\n");
  std::filesystem::permissions(dir.file("settled"), std::filesystem::perms::owner_all);
  const words path{"PATH=" + dir.path().string() + ":/usr/bin:/bin"};
  EXPECT_EQ(call({"serve", "--print-config"}, path).out, "--config " + config() + " --print-config\n");
  EXPECT_EQ(bare({"serve", "--config", "own.toml"}, path).out, "--config own.toml\n");
  EXPECT_EQ(bare({"serve"}, {path.front(), "SETTLE_CONFIG=own.toml"}).out, "\n") << "it reads that itself";
  expect_refused({"--service", "orders", "serve"},
                 "serve serves all services of its file; leave out --service");
}

TEST_F(cli_services, keys_that_are_in_redis_are_not_taken_for_none) {
  write_config(service_table("orders", "keys.redis = \"redis://:open-sesame@127.0.0.1:1\"\n"));
  expect_refused({"keys", "unknown"},
                 "the keys of this service are in Redis (keys.redis), and those are not listed");
}

TEST_F(cli_services, migrate_brings_all_services_up_to_date_and_names_those_that_fail_at_the_end) {
  write_config("[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n" + service_table("billing") +
               service_table("stock") +
               "[service.orders]\ndatabase = \"postgresql://me:open-sesame@127.0.0.1:1/orders\"\n");
  const auto made = call({"migrate"});
  EXPECT_EQ(made.code, 3) << "it may be back later";
  EXPECT_TRUE(
      std::regex_search(made.out, std::regex("service +billing +.*billing.db: created, schema version")))
      << made.out;
  EXPECT_TRUE(std::regex_search(made.out, std::regex("service +stock +.*stock.db: created"))) << made.out;
  EXPECT_TRUE(std::regex_search(made.out, std::regex("broker +main +.*main.db: created"))) << made.out;
  EXPECT_TRUE(made.err.starts_with("settle: service orders: ")) << made.err;
  EXPECT_TRUE(has(made.err, "database orders at 127.0.0.1:1")) << made.err;
  const auto again = boost::json::parse(call({"migrate", "--json"}).out);
  EXPECT_EQ(again.at_pointer("/services/stock/migrations_applied").as_int64(), 0);
  EXPECT_EQ(again.at_pointer("/errors/service orders/code").as_string(), "store_unavailable");
  EXPECT_EQ(call({"migrate", "--service", "billing"}).code, 0);
}

TEST_F(cli_services, doctor_examines_every_service_and_names_those_that_it_cannot) {
  make_three();
  const auto fine = call({"doctor"});
  EXPECT_EQ(fine.code, 0) << fine.out << fine.err;
  for (const auto* name : {"billing", "orders", "stock"})
    EXPECT_TRUE(has(fine.out, "Service   " + std::string(name) + "\nDatabase  " + dir.file(name) + ".db"))
        << fine.out;
  std::filesystem::remove(dir.file("orders.db"));
  const auto found = call({"doctor"});
  EXPECT_EQ(found.code, 2);
  EXPECT_TRUE(has(found.out, "Service   stock")) << found.out;
  EXPECT_TRUE(found.err.starts_with("settle: orders: there is no service database at ")) << found.err;
  const auto told = boost::json::parse(call({"doctor", "--json"}).out);
  EXPECT_TRUE(told.at_pointer("/services/stock/healthy").as_bool());
  EXPECT_EQ(told.at_pointer("/services/orders/error/code").as_string(), "schema_missing");
}

TEST_F(cli_services, verify_judges_services_of_one_broker_together) {
  make_three();
  publish_to("orders");
  ASSERT_EQ(call({"relay", "--once", "--service", "orders"}).code, 0);
  const auto all = call({"verify"});
  EXPECT_EQ(all.code, 0) << all.out << all.err;
  EXPECT_TRUE(has(all.out, "Service  " + dir.file("stock.db"))) << all.out;
  EXPECT_TRUE(has(all.out, "Broker   " + dir.file("main.db"))) << all.out;
  const auto two = call({"verify", "--service", "orders", "--service", "stock"});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_FALSE(has(two.out, "billing.db")) << two.out;
  EXPECT_EQ(call({"verify", "--service", "nobody"}).code, 2);
  write_config(service_table("billing", "broker = \"main\"\n") +
               service_table("orders", "broker = \"other\"\n") + "[broker.main]\nurl = \"" +
               dir.file("main.db") + "\"\n[broker.other]\nurl = \"" + dir.file("other.db") + "\"\n");
  expect_refused(
      {"verify"},
      "billing and orders have different brokers, main and other; name services of one broker with "
      "--service");
}

}  // namespace
}  // namespace settle
