// What docs/guides/sagas.md quotes about testing: the sagas of shop_sagas.hpp in worlds of the test kit. It
// uses no test framework; with one, these are its tests.
//
// Usage: saga_test <folder>      any folder; worlds have one of their own
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "settle/saga_testing.hpp"
#include "shop_sagas.hpp"

namespace {

using namespace shop;
using settle::testing::saga_world;
using settle::testing::step_fault;
using effects = std::vector<std::string>;

void check(bool what, const std::string& why) {
  if (what) return;
  std::fprintf(stderr, "saga_test: %s\n", why.c_str());
  std::exit(1);
}

// [snippet: world_tables]
settle::testing::saga_world_options tables() {
  return {.prepare =
              [](settle::transaction& tx) {
                tx.execute("create table stock (item text primary key, pieces integer not null)");
                tx.execute("create table shipments (order_id text not null)");
                tx.execute("create table return_notes (return_id text not null, what text not null)");
                tx.execute("insert into stock values ('lamp', 10), ('piano', 1)");
              },
          .reset = [] { payments = {}; }};
}
// [end]

// [snippet: world_timeout]
void a_return_that_nobody_picks_up_is_undone() {
  saga_world world(tables());
  world.add(return_processing).on<pickup_confirmed>(&pickup_confirmed::return_id);

  const auto id = world.start(return_processing, "r-1", return_request{"r-1", "o-1"});
  check(world.waits(id) == effects{"carrier.pickup_confirmed of r-1"}, world.story(id));

  world.advance(120h);
  check(world.effects(id) == effects{"create_label", "escalate_to_support", "undo create_label"},
        world.story(id));
  check(world.status(id) == "COMPENSATED", world.story(id));
}
// [end]

// [snippet: world_faults]
void a_charge_whose_answer_is_lost_is_undone_too() {
  saga_world world(tables());
  world.add(place_order);
  world.fail("charge_payment", step_fault::lost_answer);  // it is done, and nobody hears of it

  const auto id = world.start(place_order, "o-1", order{"o-1", "lamp", 4200});
  world.advance(1h);  // all attempts, with the pauses between them
  check(world.effects(id) == effects{"reserve_inventory", "undo charge_payment", "undo reserve_inventory"},
        world.story(id));
}
// [end]

// [snippet: world_crashes]
void a_crash_changes_nothing() {
  auto options = tables();
  options.look = [](settle::transaction& tx) {
    return std::to_string(tx.execute("select sum(pieces) from stock")[0][0].integer()) + " in stock, " +
           std::to_string(tx.execute("select count(*) from shipments")[0][0].integer()) + " shipped";
  };
  saga_world world(options);
  world.add(place_order).add(return_processing).on<pickup_confirmed>(&pickup_confirmed::return_id);

  world.crash_everywhere(place_order, order{"o-1", "lamp", 4200});
  world.crash_everywhere(place_order, order{"o-2", "piano", 990000});  // which is refused, and undone
  world.crash_everywhere(return_processing, return_request{"r-1", "o-1"},
                         [](saga_world& in, settle::saga_id) { in.deliver(pickup_confirmed{"r-1"}); });
}
// [end]

// [snippet: world_deploy]
settle::flow<> without_a_label(settle::saga& saga, const return_request& r) {
  co_await saga.wait_for<pickup_confirmed>(r.id, 120h);
  co_await saga.run(returns::refund, r);
}

void a_release_that_breaks_returns_under_way_is_found() {
  saga_world world(tables());
  world.add(return_processing).on<pickup_confirmed>(&pickup_confirmed::return_id);
  world.start(return_processing, "r-1", return_request{"r-1", "o-1"});

  const settle::saga_type next("return_processing", 1, without_a_label,
                               {returns::create_label, returns::refund});
  try {
    world.deploy(next);
    check(false, "the difference was not found");
  } catch (const settle::testing::saga_difference& e) {
    std::printf("%s\n",
                e.what());  // … row 1 of the journal is the step create_label, and the body asks for …
  }
}
// [end]

}  // namespace

int main() {
  try {
    a_return_that_nobody_picks_up_is_undone();
    a_charge_whose_answer_is_lost_is_undone_too();
    a_crash_changes_nothing();
    a_release_that_breaks_returns_under_way_is_found();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "saga_test: %s\n", e.what());
    return 1;
  }
}
