// What people see of sagas and decide about them: the real program, on both databases.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <optional>
#include <thread>

#include "settle/postgres.hpp"
#include "settle/saga.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/databases.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

struct pickup_confirmed {
  std::string return_id;
};

}  // namespace

template <>
struct codec<pickup_confirmed> {
  static constexpr std::string_view topic = "returns";
  static constexpr std::string_view type = "pickup.confirmed";
  static std::string key(const pickup_confirmed& e) { return e.return_id; }
  static std::string encode(const pickup_confirmed& e) { return e.return_id; }
  static pickup_confirmed decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

// What the bank and the label printer do; tests change it.
std::atomic<bool> bank_answers = true;
std::atomic<bool> label_can_be_cancelled = true;

std::string print_label(transaction&, const std::string& id) { return "label of " + id; }
void cancel_label(transaction&, const std::string&) {
  if (!label_can_be_cancelled) throw step_refused("the printer is on fire\x1b[2J");
}
std::string pay_back(call&, const std::string& id) {
  if (!bank_answers) throw std::runtime_error("no answer from the bank");
  return "payment of " + id;
}

const auto create_label = local("create_label", print_label).undo(cancel_label);
const auto refund = remote("refund", pay_back).on_unknown(unknown::hold);

flow<> process_return(saga& saga, const std::string& id) {
  co_await saga.run(create_label, id);
  const auto pickup = co_await saga.wait_for<pickup_confirmed>(id, 120h);
  if (!pickup) co_await saga.undo("not picked up within 5 days");
  co_await saga.run(refund, id);
}
const saga_type return_processing("return_processing", 2, process_return, {create_label, refund});

class saga_cli : public ::testing::TestWithParam<dialect> {
 protected:
  void SetUp() override {
    if (GetParam() == dialect::postgres) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      server.emplace();
    }
    db = server ? postgres::open(server->conninfo(), {.env = {.log = &log}})
                : sqlite::open(dir.file("service.db"), {.env = {.log = &log}});
    migrate(*db);
    host.emplace(*db, saga_host_options{.name = "shop", .call_threads = 0, .idle_poll = 20ms});
    host->add(return_processing);
    host->on<pickup_confirmed>([](const pickup_confirmed& e) { return e.return_id; });
    bank_answers = label_can_be_cancelled = true;
  }

  test::outcome settle(words arguments) {
    arguments.insert(arguments.end(), {"--database", server ? server->conninfo() : dir.file("service.db")});
    return test::program(SETTLE_CLI, arguments, dir.file("call"), {}).end();
  }
  json::value settle_json(words arguments) {
    arguments.emplace_back("--json");
    const auto done = settle(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return json::parse(done.code == 0 ? done.out : "null");
  }
  json::value shown(const std::string& entity) { return settle_json({"saga", "show", entity}); }
  std::string status(const std::string& entity) {
    return std::string(shown(entity).at("status").as_string());
  }

  saga_id start(const std::string& id) {
    const auto made = host->start(return_processing, id, id);
    drain();
    return made;
  }
  void drain() {
    while (host->run_once()) {
    }
  }
  void pick_up(const std::string& id) {
    auto tx = db->begin();
    host->deliver(tx, "picked up " + id, pickup_confirmed{id});
    tx.commit();
    drain();
  }
  // One of which nobody knows whether it was paid back.
  saga_id start_held(const std::string& id) {
    bank_answers = false;
    const auto made = start(id);
    pick_up(id);
    bank_answers = true;
    return made;
  }

  test::temp_dir dir;
  test::quiet_log log;
  std::optional<test::scratch_database> server;
  std::unique_ptr<database> db;
  std::optional<saga_host> host;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Proves S1
TEST_P(saga_cli, lists_sagas_that_have_not_ended_the_newest_first) {
  EXPECT_TRUE(has(settle({"saga", "list"}).out, "no saga is under way or held here"))
      << "of an empty database";
  for (const auto* id : {"r-1", "r-2", "r-3"}) start(id);
  pick_up("r-2");
  start_held("r-4");
  const auto listed = settle_json({"saga", "list"}).as_array();
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0].at("entity"), "r-4");
  EXPECT_EQ(listed[0].at("status"), "HELD");
  EXPECT_EQ(listed[1].at("entity"), "r-3");
  EXPECT_EQ(listed[1].at("type"), "return_processing");
  EXPECT_EQ(listed[1].at("version"), 2);
  EXPECT_EQ(listed[1].at("host"), "shop");
  EXPECT_EQ(listed[1].at("current_step"), "pickup.confirmed");
  EXPECT_EQ(listed[1].at("processes"), 1);
  EXPECT_EQ(listed[2].at("entity"), "r-1");
  const auto first = settle_json({"saga", "list", "--limit", "1"}).as_array().at(0);
  const auto second =
      settle_json({"saga", "list", "--limit", "1", "--after", std::to_string(first.at("number").as_int64())});
  EXPECT_EQ(second.at(0).at("entity"), "r-3");

  EXPECT_EQ(settle_json({"saga", "list", "--held"}).as_array().size(), 1u);
  EXPECT_EQ(settle_json({"saga", "list", "--status", "COMPLETED"}).at(0).at("entity"), "r-2");
  EXPECT_EQ(settle_json({"saga", "list", "--status", "ANY"}).as_array().size(), 4u);
  EXPECT_EQ(settle_json({"saga", "list", "--entity", "r-1"}).as_array().size(), 1u);
  EXPECT_EQ(settle_json({"saga", "list", "--type", "other"}).as_array().size(), 0u);
  EXPECT_EQ(settle_json({"saga", "list", "--host", "other"}).as_array().size(), 0u);
  EXPECT_EQ(settle({"saga", "list", "--status", "DONE"}).code, 2);
  EXPECT_EQ(settle({"saga", "list", "--status", "HELD", "--held"}).code, 2);

  const auto text = settle({"saga", "list"}).out;
  EXPECT_TRUE(has(text, "return_processing 2")) << text;
  EXPECT_TRUE(has(text, "nobody knows whether the step refund was done: no answer f")) << text;
  EXPECT_TRUE(has(text, "`settle saga show ID --database")) << text;
}

// Proves S1, S3
TEST_P(saga_cli, shows_what_a_saga_did_and_what_it_waits_for_until_when) {
  const auto id = start("r-1");
  const auto waiting = settle({"saga", "show", "r-1"}).out;
  EXPECT_TRUE(has(waiting, "return_processing 2 of r-1: RUNNING\n")) << waiting;
  EXPECT_TRUE(has(waiting, id.text())) << waiting;
  EXPECT_TRUE(has(waiting, "create_label")) << waiting;
  EXPECT_TRUE(has(waiting, "done: label of r-1")) << waiting;
  EXPECT_TRUE(has(waiting, "now      wait for pickup.confirmed of r-1: until ")) << waiting;
  EXPECT_TRUE(has(waiting, "(in 4 d 23 h)")) << waiting;
  EXPECT_TRUE(has(waiting, "`settle saga signal --host shop --type pickup.confirmed --key r-1 ")) << waiting;
  pick_up("r-1");
  const auto ended = shown(id.text());
  EXPECT_EQ(ended.at("status"), "COMPLETED");
  const auto& timeline = ended.at("timeline").as_array();
  ASSERT_EQ(timeline.size(), 3u);
  EXPECT_EQ(timeline[0].at("what"), "step");
  EXPECT_EQ(timeline[1].at("what"), "wait");
  EXPECT_EQ(timeline[1].at("state"), "done");
  EXPECT_EQ(timeline[1].at("result"), "r-1");
  EXPECT_EQ(timeline[2].at("what"), "call");
  EXPECT_EQ(timeline[2].at("result"), "payment of r-1");
  EXPECT_EQ(settle({"saga", "show", "r-9"}).code, 2);
  EXPECT_EQ(settle({"saga", "show", "01890a5d-ac96-774b-bcce-b302099a8057"}).code, 2);
}

// Proves S1, S2
TEST_P(saga_cli, says_why_a_saga_is_held_and_each_thing_that_can_be_done) {
  start_held("r-1");
  const auto text = settle({"saga", "show", "r-1"}).out;
  EXPECT_TRUE(has(text, "! HELD, a person is needed: nobody knows whether the step refund was done")) << text;
  for (const auto* order : {"retry", "mark-done", "abort"})
    EXPECT_TRUE(has(text, "`settle saga " + std::string(order) + " ")) << text;
  EXPECT_FALSE(has(text, "settle saga skip")) << text;
  EXPECT_TRUE(has(text, "outcome unknown: no answer from the bank")) << text;
  const auto possible = shown("r-1").at("possible_orders").as_array();
  ASSERT_EQ(possible.size(), 3u);
  EXPECT_EQ(possible[1].at("order"), "mark-done");

  EXPECT_EQ(settle({"saga", "retry", "r-1"}).code, 2) << "no reason";
  const auto refused = settle({"saga", "skip", "r-1", "--reason", "why not"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "here it takes retry, mark-done, abort")) << refused.err;
  EXPECT_EQ(status("r-1"), "HELD") << "nothing was changed";
}

// Proves S1, S2
TEST_P(saga_cli, orders_are_done_by_the_owner_and_the_outcome_is_told) {
  start_held("r-1");
  {
    const background loop(*host);
    const auto done = settle({"saga", "mark-done", "r-1", "--result", "payment 7", "--reason",
                              "seen at the bank", "--who", "ann"});
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.out, "return_processing 2 of r-1, mark-done: it is COMPLETED\n");
  }
  const auto text = settle({"saga", "show", "r-1"}).out;
  EXPECT_TRUE(has(text, "— ordered: mark-done")) << text;
  EXPECT_TRUE(has(text, "ann: seen at the bank")) << text;
  EXPECT_TRUE(has(text, "payment 7")) << text;
  const auto again = settle({"saga", "retry", "r-1", "--reason", "again"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "is COMPLETED: it has ended; nothing was changed")) << again.err;
}

// Proves S1, S2
TEST_P(saga_cli, an_undo_that_fails_is_retried_and_then_skipped_by_hand) {
  label_can_be_cancelled = false;
  start("r-1");
  const background loop(*host);
  const auto aborted = settle({"saga", "abort", "r-1", "--reason", "the customer has called"});
  EXPECT_EQ(aborted.code, 0) << aborted.err;
  EXPECT_TRUE(has(aborted.out, "abort: and it is HELD again: the undo of create_label has failed"))
      << aborted.out;
  EXPECT_FALSE(has(aborted.out, "\x1b")) << "nothing from outside moves the cursor";
  EXPECT_EQ(settle({"saga", "abort", "r-1", "--reason", "again"}).code, 2) << "it is undone already";
  const auto retried = settle_json({"saga", "retry", "r-1", "--reason", "try again"});
  EXPECT_EQ(retried.at("state"), "done");
  EXPECT_EQ(retried.at("status"), "HELD");
  const auto skipped = settle_json({"saga", "skip", "r-1", "--reason", "cancelled by telephone"});
  EXPECT_EQ(skipped.at("status"), "COMPENSATED");
  const auto text = settle({"saga", "show", "r-1"}).out;
  EXPECT_TRUE(has(text, "— undo begins")) << text;
  EXPECT_TRUE(has(text, "because  aborted by ")) << text;
}

// Proves S1, S2
TEST_P(saga_cli, without_a_process_that_knows_it_an_order_waits_and_that_is_told) {
  start_held("r-1");
  host->leave();
  const auto noted = settle({"saga", "retry", "r-1", "--reason", "the bank is back"});
  EXPECT_EQ(noted.code, 0) << noted.err;
  EXPECT_EQ(noted.out,
            "return_processing 2 of r-1, retry is noted; no process that knows return_processing 2 of host "
            "shop is running, so it is done when one is\n");
  const auto twice = settle({"saga", "abort", "r-1", "--reason", "another one"});
  EXPECT_EQ(twice.code, 3) << "the first one stands";
  EXPECT_TRUE(has(twice.err, "somebody has ordered something")) << twice.err;
  drain();
  EXPECT_EQ(status("r-1"), "COMPLETED");
}

// Proves S1, S3
TEST_P(saga_cli, delivers_an_event_by_hand_and_keeps_who_and_why) {
  const auto id = start("r-1");
  EXPECT_EQ(settle({"saga", "signal", "--type", "pickup.confirmed", "--key", "r-1"}).code, 2) << "no reason";
  EXPECT_EQ(settle({"saga", "signal", "--type", "pickup.confirmed", "--key", "r-1", "--reason", "x", "--host",
                    "other"})
                .code,
            2);
  const words call{"saga",      "signal",
                   "--type",    "pickup.confirmed",
                   "--key",     "r-1",
                   "--payload", "r-1",
                   "--reason",  "by telephone",
                   "--who",     "ann",
                   "--id",      "01890a5d-ac96-774b-bcce-b302099a8057"};
  const auto given = settle_json(call);
  EXPECT_EQ(given.at("delivered"), true);
  EXPECT_EQ(given.at("host"), "shop");
  EXPECT_EQ(given.at("saga"), json::value(id.text()));
  EXPECT_EQ(settle_json(call).at("delivered"), false) << "the same one again";
  drain();
  EXPECT_EQ(status("r-1"), "COMPLETED");
  const auto text = settle({"saga", "show", "r-1"}).out;
  EXPECT_TRUE(has(text, "came, by hand of ann: by telephone: r-1")) << text;
  const auto view = server ? "settle.outbox_events" : "settle_outbox_events";
  EXPECT_EQ(
      db->read()
          .execute("select count(*) from " + std::string(view) + " where event_type = 'saga.signalled'")[0][0]
          .integer(),
      1)
      << "whoever reads the topic of sagas is told, once";

  const auto early = settle({"saga", "signal", "--type", "pickup.confirmed", "--key", "r-2", "--payload",
                             "r-2", "--reason", "by telephone"});
  EXPECT_TRUE(has(early.out, "kept; no saga of shop waits for it yet")) << early.out;
  start("r-2");
  EXPECT_EQ(status("r-2"), "COMPLETED");
}

// Proves S1
TEST_P(saga_cli, lists_one_that_only_waits_for_the_end_of_another) {
  const auto parent = start("parent"), child = start("child");
  const std::string sagas = server ? "settle.sagas" : "settle_sagas";
  {
    auto tx = db->begin();
    tx.execute(
        "update " + sagas + " set parent_no = (select no from " + sagas + " where id = $1) where id = $2",
        {parent, child});
    tx.execute("update " + sagas + " set due_at = null where id = $1", {parent});
    tx.execute("delete from " + std::string(server ? "settle.saga_waits" : "settle_saga_waits") +
                   " where no = (select no from " + sagas + " where id = $1)",
               {parent});
    tx.commit();
  }
  EXPECT_EQ(settle_json({"saga", "list"}).as_array().size(), 2u);
  EXPECT_EQ(shown("child").at("parent"), json::value(parent.text()));
}

// Proves S1
TEST_P(saga_cli, of_several_sagas_of_an_entity_the_one_under_way_is_meant) {
  const auto first = start("r-1");
  pick_up("r-1");
  const auto other = saga_id(environment{}.ids->next());
  host->start(return_processing, "r-1", std::string("r-1"), {.id = other});
  drain();
  EXPECT_EQ(shown("r-1").at("id"), json::value(other.text()));
  const auto third = saga_id(environment{}.ids->next());
  host->start(return_processing, "r-1", std::string("r-1"), {.id = third});
  drain();
  const auto which = settle({"saga", "show", "r-1"});
  EXPECT_EQ(which.code, 2);
  for (const auto& id : {first, other, third}) EXPECT_TRUE(has(which.err, id.text())) << which.err;
}

INSTANTIATE_TEST_SUITE_P(databases, saga_cli, test::both_databases, test::database_name);

// Proves D7, S1
TEST(saga_status, says_that_a_person_is_needed_and_which_kinds_nobody_knows) {
  test::temp_dir dir;
  const auto db = sqlite::open(dir.file("settle.db"));
  migrate(*db);
  sqlite::open_broker(dir.file("broker.db"));
  const auto call = [&](words arguments) {
    arguments.insert(arguments.begin(), {"--data", dir.path().string()});
    return test::program(SETTLE_CLI, arguments, dir.file("call"), {}).end();
  };
  EXPECT_FALSE(has(call({"status"}).out, "saga")) << "who has none reads nothing about them";
  saga_host host(*db, {.name = "shop", .call_threads = 0});
  host.add(return_processing);
  host.on<pickup_confirmed>([](const pickup_confirmed& e) { return e.return_id; });
  bank_answers = false;
  host.start(return_processing, "r-1", std::string("r-1"));
  host.start(return_processing, "r-2", std::string("r-2"));
  auto tx = db->begin();
  host.deliver(tx, "e-1", pickup_confirmed{"r-1"});
  tx.commit();
  while (host.run_once()) {
  }
  auto text = call({"status"}).out;
  EXPECT_TRUE(has(text, "  sagas    1 running, 0 compensating, 1 held\n")) << text;
  EXPECT_TRUE(has(text, "! 1 saga is HELD, a person is needed: see `settle saga list --held --data")) << text;
  EXPECT_FALSE(has(text, "no process that knows")) << text;
  host.leave();
  text = call({"status"}).out;
  EXPECT_TRUE(
      has(text, "! 1 saga of return_processing 2, host shop, but no process that knows it is running"))
      << text;
  const auto told = json::parse(call({"status", "--json"}).out).at("service").at("sagas");
  EXPECT_EQ(told.at("running"), 1);
  EXPECT_EQ(told.at("held"), 1);
  EXPECT_EQ(told.at("kinds").as_array().size(), 2u);

  test::program daemon(SETTLED, {"--data", dir.path().string(), "--listen", "127.0.0.1:0"},
                       dir.file("settled"), {});
  ASSERT_TRUE(daemon.logs(" info ready ")) << daemon.log();
  std::string page;
  EXPECT_TRUE(test::eventually([&] {
    page = test::get(daemon.port(), "/metrics").body;
    return has(page, "\nsettle_sagas_held 1\n");
  })) << page;
  for (const auto* line : {R"(settle_sagas{host="shop",type="return_processing",status="HELD"} 1)",
                           R"(settle_sagas{host="shop",type="return_processing",status="RUNNING"} 1)",
                           "settle_sagas_stranded 1"})
    EXPECT_TRUE(has(page, line)) << line << "\n" << page;
}

}  // namespace
}  // namespace settle
