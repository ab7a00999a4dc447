// What docs/guides/sagas.md quotes: the sagas of shop_sagas.hpp, run on SQLite; and the other side of a
// remote step.
//
// Usage: sagas <folder>      an existing, empty folder for the database files
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "settle/participate.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "shop_sagas.hpp"

namespace {

void expect(bool what, const char* why) {
  if (!what) throw std::logic_error(why);
}

// [snippet: saga_participant]
std::string charge_once(settle::database& bank, const settle::saga_call& asked, std::int64_t cents) {
  auto tx = bank.begin();
  const auto entry = settle::participate(tx, asked);
  if (entry.how() == settle::participation::late || entry.how() == settle::participation::stale)
    throw settle::step_refused("refused: " + std::string(to_string(entry.how())));
  std::string answer = entry.answer();  // as it was recorded
  if (entry.fresh()) {
    tx.execute("insert into charges (cents) values ($1)", {cents});
    answer = "charge of " + std::to_string(cents);
    entry.record(tx, answer);
  }
  tx.commit();
  return answer;
}
// [end]

std::string status(settle::database& db, settle::saga_id id) {
  return db.read().execute("select status from settle_saga_instances where saga_id = $1", {id})[0][0].text();
}

std::int64_t number(settle::database& db, std::string_view sql) {
  return db.read().execute(sql)[0][0].integer();
}

void run(const std::string& folder) {
  using namespace shop;
  const auto db = settle::sqlite::open(folder + "/shop.db");
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::migrate(*db);
  {
    auto tx = db->begin();
    tx.execute_script(
        "create table stock (item text primary key, pieces integer not null);"
        "create table shipments (order_id text not null);"
        "create table return_notes (return_id text not null, what text not null);"
        "create table charges (cents integer not null);"
        "insert into stock values ('lamp', 10), ('piano', 1)");
    tx.commit();
  }

  // [snippet: saga_host]
  settle::saga_host host(*db, *broker, {.name = "shop"});
  host.add(place_order).add(return_processing);
  host.on<pickup_confirmed>([](const pickup_confirmed& e) { return e.return_id; });
  // [end]

  const order lamp{"o-1", "lamp", 4200};
  const order piano{"o-2", "piano", 990000};
  // [snippet: saga_start]
  auto tx = db->begin();
  tx.execute("insert into shipments (order_id) values ('an earlier one')");  // whatever else belongs to it
  const auto id = host.start(tx, place_order, lamp.id, lamp);
  tx.commit();  // now it starts
  // [end]
  const auto refused = host.start(place_order, piano.id, piano);
  const auto returned = host.start(return_processing, "r-1", return_request{"r-1", "o-1"});

  settle::relay relay(*db, broker->publishing());
  {
    auto told = db->begin();
    settle::publish(told, pickup_confirmed{"r-1"});
    told.commit();
  }
  const auto ended = [&](settle::saga_id which) { return status(*db, which) != "RUNNING"; };
  {
    // [snippet: saga_loop]
    const settle::background loop(host);  // a thread of its own; stops when it goes out of scope
    // [end]
    const settle::background relaying(relay);
    const auto commits = db->watch();
    while (!ended(id) || !ended(refused) || !ended(returned)) commits->wait(100ms, {});
  }

  expect(status(*db, id) == "COMPLETED", "the lamp is ordered");
  expect(status(*db, refused) == "COMPENSATED", "the piano is not");
  expect(status(*db, returned) == "COMPLETED", "the return is processed");
  expect(number(*db, "select pieces from stock where item = 'piano'") == 1, "and is back in stock");
  expect(number(*db, "select count(*) from return_notes") == 2,
         "the buyer is told, and the lamp is put away");

  const settle::saga_call asked{id, "charge_payment", settle::saga_op::act, 1};
  expect(charge_once(*db, asked, 4200) == "charge of 4200", "it is charged");
  expect(charge_once(*db, asked, 4200) == "charge of 4200", "the same answer again");
  expect(number(*db, "select count(*) from charges") == 1, "once");
  std::printf("the lamp is on its way, the piano is not\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sagas <folder>\n");
    return 2;
  }
  try {
    run(argv[1]);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sagas: %s\n", e.what());
    return 1;
  }
}
