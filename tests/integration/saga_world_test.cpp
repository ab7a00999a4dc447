// The test kit for sagas, used as its users do, and shown to find what it is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "settle/error.hpp"
#include "settle/saga_testing.hpp"

namespace settle {
namespace {

struct parcel_found {
  std::string id;
};

}  // namespace

template <>
struct codec<parcel_found> {
  static constexpr std::string_view topic = "parcels";
  static constexpr std::string_view type = "parcel.found";
  static std::string key(const parcel_found& e) { return e.id; }
  static std::string encode(const parcel_found& e) { return e.id; }
  static parcel_found decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace {

using namespace std::chrono_literals;
using testing::saga_difference;
using testing::saga_world;
using testing::step_fault;
using texts = std::vector<std::string>;

std::string note(transaction& tx, const std::string& id) {
  tx.execute("insert into notes (what) values ($1)", {id});
  return "noted " + id;
}
void unnote(transaction& tx, const std::string& id) {
  tx.execute("insert into notes (what) values ($1)", {"undo " + id});
}
const auto reserve = local("reserve", note).undo(unnote);
const auto ship = local("ship", note);
const auto charge = remote("charge", [](call&, const std::string& id) {
                      return "charge of " + id;
                    }).undo([](call&, const std::string&, const std::optional<std::string>&) {});
const auto tell = remote("tell", [](call&, const std::string&) {}).on_unknown(unknown::hold);

const auto place_order = saga_of<std::string>("place_order", 1, reserve, charge, ship);
const auto told_order = saga_of<std::string>("told_order", 1, reserve, tell);

flow<std::string> search(saga& s, const std::string& id) {
  co_await s.run(reserve, id);
  const auto found = co_await s.wait_for<parcel_found>(id, 120h);
  if (!found) co_await s.undo("not found within 5 days");
  co_await s.sleep(1h);
  co_await s.run(charge, id);
  co_return "found " + found->id;
}
const saga_type parcel_search("parcel_search", 1, search, {reserve, charge, ship});

// Bodies with the mistakes that the kit is there to find.
int drawn = 0;
flow<> draws_numbers(saga& s, const std::string&) {
  const auto random = std::to_string(++drawn);
  co_await s.run(reserve, random);
  co_await s.run(ship, random);
}
const saga_type drawing("drawing", 1, draws_numbers, {reserve, ship});

bool second_time = false;
flow<> looks_elsewhere(saga& s, const std::string& id) {
  if (std::exchange(second_time, true))
    co_await s.run(ship, id);
  else
    co_await s.run(reserve, id);
}
const saga_type looking("looking", 1, looks_elsewhere, {reserve, ship});

flow<std::string> returns_another(saga& s, const std::string& id) {
  co_await s.run(reserve, id);
  co_return std::to_string(++drawn);
}
const saga_type returning("returning", 1, returns_another, {reserve});

flow<> waits_at_random(saga& s, const std::string&) { co_await s.sleep(std::chrono::hours(++drawn)); }
const saga_type waiting("waiting", 1, waits_at_random, {});

testing::saga_world_options with_notes() {
  return {.prepare = [](transaction& tx) { tx.execute("create table notes (what text not null)"); },
          .look =
              [](transaction& tx) {
                const auto found = tx.execute("select what from notes order by what");
                std::string all;
                for (std::size_t i = 0; i < found.size(); ++i) all += found[i][0].text() + ";";
                return all;
              }};
}

struct saga_worlds : ::testing::Test {
  saga_worlds() : world(with_notes()) {
    world.add(place_order).add(parcel_search).on<parcel_found>(&parcel_found::id);
  }
  saga_world world;
};

std::string said(const std::function<void()>& what) {
  try {
    what();
  } catch (const saga_difference& e) {
    return e.what();
  }
  return "nothing";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Proves S1, S2
TEST_F(saga_worlds, tell_what_a_saga_does_waits_for_and_undoes) {
  const auto id = world.start(place_order, "o-1", std::string("o-1"));
  EXPECT_EQ(world.status(id), "COMPLETED");
  EXPECT_EQ(world.effects(id), (texts{"reserve", "charge", "ship"}));
  EXPECT_EQ(world.result<std::string>(id, "charge"), "charge of o-1");
  ASSERT_EQ(world.calls().size(), 1u);
  EXPECT_EQ(world.calls()[0].step, "charge");

  const auto search = world.start(parcel_search, "p-1", std::string("p-1"));
  EXPECT_EQ(world.waits(search), texts{"parcel.found of p-1"});
  world.advance(119h);
  EXPECT_EQ(world.status(search), "RUNNING");
  world.advance(1h);
  EXPECT_EQ(world.status(search), "COMPENSATED");
  EXPECT_EQ(world.effects(search), (texts{"reserve", "undo reserve"}));
  EXPECT_EQ(world.last_error(search), "not found within 5 days");
  EXPECT_TRUE(has(world.story(search), "parcel_search 1 of p-1: COMPENSATED, not found"))
      << world.story(search);

  const auto other = world.start(parcel_search, "p-2", std::string("p-2"));
  world.deliver(parcel_found{"p-2"});
  EXPECT_EQ(world.waits(other), texts{"sleep"});
  world.restart();
  const auto before = world.now();
  world.advance(1h);
  EXPECT_EQ(world.now() - before, 1h);
  EXPECT_EQ(world.result<std::string>(other), "found p-2");
}

// Proves S1, S2
TEST_F(saga_worlds, make_any_step_fail_in_any_way) {
  const auto run = [&](const std::string& entity) {
    const auto id = world.start(place_order, entity, entity);
    world.advance(10min);
    return id;
  };
  world.fail("ship", step_fault::refused, 1);
  auto id = run("refused");
  EXPECT_EQ(world.effects(id), (texts{"reserve", "charge", "undo charge", "undo reserve"}));
  EXPECT_EQ(world.status(run("and not again")), "COMPLETED");

  world.fail("ship", step_fault::fails, 2);
  EXPECT_EQ(world.status(run("transient")), "COMPLETED");
  world.fail("ship", step_fault::fails);
  EXPECT_EQ(world.status(run("for ever")), "COMPENSATED");
  world.mend("ship");

  world.fail("charge", step_fault::unavailable, 3);
  id = run("unavailable");
  EXPECT_EQ(world.status(id), "COMPLETED");
  EXPECT_FALSE(has(world.story(id), "unknown")) << world.story(id);

  const auto calls = world.calls().size();
  world.fail("charge", step_fault::lost_answer, 1);
  id = run("lost");
  EXPECT_EQ(world.status(id), "COMPLETED");
  EXPECT_TRUE(has(world.story(id), "unknown")) << world.story(id);
  ASSERT_EQ(world.calls().size(), calls + 2) << "it was repeated";
  EXPECT_EQ(world.calls()[calls], world.calls()[calls + 1]) << "with its key";

  world.fail("ship", step_fault::refused, 1);
  world.fail_undo("charge", step_fault::refused);
  id = run("cannot be undone");
  EXPECT_EQ(world.status(id), "HELD");
  world.order(id, saga_order::skip);
  EXPECT_EQ(world.status(id), "COMPENSATED");
}

// Proves S1, S2
TEST_F(saga_worlds, let_a_step_do_something_else) {
  world.replace(
      remote("charge", [](call&, const std::string&) -> std::string { throw step_refused("no money"); }));
  const auto id = world.start(place_order, "o-1", std::string("o-1"));
  EXPECT_EQ(world.effects(id), (texts{"reserve", "undo reserve"}));
  EXPECT_TRUE(has(world.last_error(id), "no money"));

  const auto ask =
      remote("ask", [](call&, const std::string&) {}).on_unknown(unknown::ask, [](call&, const std::string&) {
        return found_step<void>{finding::never};
      });
  const auto asking = saga_of<std::string>("asking", 1, reserve, ask);
  world.add(asking);
  world.fail("ask", step_fault::lost_answer, 1);
  const auto undone = world.start(asking, "o-2", std::string("o-2"));
  world.advance(1min);
  EXPECT_EQ(world.effects(undone), (texts{"reserve", "undo reserve"})) << "it says that it never was";
  world.replace(
      remote("ask", [](call&, const std::string&) {}).on_unknown(unknown::ask, [](call&, const std::string&) {
        return found_step<void>{finding::done};
      }));
  world.fail("ask", step_fault::lost_answer, 1);
  const auto done = world.start(asking, "o-3", std::string("o-3"));
  world.advance(1min);
  EXPECT_EQ(world.effects(done), (texts{"reserve", "ask"})) << "and here that it was";
}

// Proves S1, S4
TEST_F(saga_worlds, name_the_step_that_a_body_asks_for_differently_when_it_runs_again) {
  world.add(drawing).add(looking).add(returning).add(waiting);
  auto why = said([&] { world.start(drawing, "d", std::string("d")); });
  EXPECT_TRUE(has(why, "drawing 1 of d was run again")) << why;
  EXPECT_TRUE(has(why, "the step reserve is asked for with another input than before")) << why;
}

// Proves S1, S4
TEST_F(saga_worlds, find_a_body_that_looks_at_something_that_changes) {
  world.add(looking);
  second_time = false;
  const auto why = said([&] { world.start(looking, "l", std::string("l")); });
  EXPECT_TRUE(has(why, "row 1 of the journal is the step reserve, and the body asks for the step ship"))
      << why;
}

// Proves S1, S4
TEST_F(saga_worlds, find_a_body_that_returns_or_waits_for_something_else_each_time) {
  {
    saga_world other(with_notes());
    other.add(returning);
    EXPECT_TRUE(
        has(said([&] { other.start(returning, "r", std::string("r")); }), "the body returns something else"));
  }
  world.add(waiting);
  EXPECT_TRUE(has(said([&] { world.start(waiting, "w", std::string("w")); }),
                  "a sleep is asked for with another time"));
}

// Proves S1, S4
TEST_F(saga_worlds, name_the_change_of_a_program_that_sagas_under_way_do_not_survive) {
  const auto id = world.start(parcel_search, "p-1", std::string("p-1"));
  world.deploy(saga_type("parcel_search", 1, search, {ship, reserve, charge}));
  EXPECT_EQ(world.status(id), "RUNNING") << "the same body";
  static const auto other_body = +[](saga& s, const std::string& id) -> flow<std::string> {
    co_await s.run(ship, id);
    co_return id;
  };
  const saga_type<std::string, std::string> changed("parcel_search", 1, other_body, {reserve, charge, ship});
  const auto why = said([&] { world.deploy(changed); });
  EXPECT_TRUE(has(why, "row 1 of the journal is the step reserve, and the body asks for the step ship"))
      << why;
  EXPECT_THROW(world.deploy(drawing), error) << "which is not there";
}

// Proves S1, S4
TEST_F(saga_worlds, crash_at_every_commit_and_call_and_compare_the_ends) {
  const auto report = world.crash_everywhere(place_order, std::string("o-1"));
  EXPECT_EQ(report.runs, static_cast<int>(report.points.size()));
  EXPECT_EQ(report.held, 0);
  for (const auto* point :
       {"saga.start.before #1", "saga.tick.before #1", "saga.tick.after #1", "saga.call.before #1",
        "saga.call.after #1", "saga.step.after #2", "saga.send.before #1"})
    EXPECT_NE(std::ranges::find(report.points, point), report.points.end()) << point;

  world.fail("ship", step_fault::refused);
  EXPECT_GT(world.crash_everywhere(place_order, std::string("o-1")).runs, 10) << "and while it undoes";

  world.mend("ship");
  // What is certainly refused is of unknown outcome after a crash: it is undone, and nothing is left done
  // either.
  world.fail("charge", step_fault::refused);
  EXPECT_GT(world.crash_everywhere(place_order, std::string("o-1")).runs, 10);
  world.mend("charge");
  const auto waited = world.crash_everywhere(parcel_search, std::string("p-1"), [](saga_world& in, saga_id) {
    in.deliver(parcel_found{"p-1"});
    in.advance(1h);
  });
  EXPECT_NE(std::ranges::find(waited.points, "saga.deliver.before #1"), waited.points.end());
}

// Proves S1, S4
TEST_F(saga_worlds, put_back_what_stands_for_the_outside_before_each_crash) {
  static std::set<std::string> remembered;
  const auto pay = remote("pay", [](call& c, const std::string&) {
                     remembered.insert(c.key());
                   }).on_unknown(unknown::ask, [](call& c, const std::string&) {
    return found_step<void>{remembered.contains(c.key()) ? finding::done : finding::unknown};
  });
  const auto paying = saga_of<std::string>("paying", 1, reserve, pay);
  saga_world forgetful(with_notes());
  forgetful.add(paying);
  const auto why = said([&] { forgetful.crash_everywhere(paying, std::string("o-1")); });
  EXPECT_TRUE(has(why, "called: nothing\n    undisturbed: pay")) << "it was there before it came: " << why;

  auto options = with_notes();
  options.reset = [] { remembered.clear(); };
  saga_world asking(options);
  asking.add(paying);
  const auto report = asking.crash_everywhere(paying, std::string("o-1"));
  EXPECT_GT(report.held, 0) << "what was asked about before it was sent is for a person";
  EXPECT_LT(report.held, report.runs);
}

// Proves S1, S4
TEST_F(saga_worlds, accept_that_a_crash_asks_for_a_person_where_a_step_says_so) {
  world.add(told_order);
  const auto report = world.crash_everywhere(told_order, std::string("o-1"));
  EXPECT_GT(report.held, 0);
  EXPECT_LT(report.held, report.runs);
}

// Proves S1, S4
TEST_F(saga_worlds, find_an_effect_outside_of_the_transaction_that_a_crash_doubles) {
  static int printed = 0;
  printed = 0;
  auto options = with_notes();
  options.look = [](transaction&) {
    return std::exchange(printed, 0) == 1 ? "printed once" : "printed more often";
  };
  saga_world careless(options);
  const auto print = local("print", [](transaction& tx, const std::string& id) {
    ++printed;
    tx.execute("insert into notes (what) values ($1)", {id});
  });
  const auto printing = saga_of<std::string>("printing", 1, print, ship);
  careless.add(printing);
  const auto why = said([&] { careless.crash_everywhere(printing, std::string("o-1")); });
  EXPECT_TRUE(has(why, "a crash at saga.")) << why;
  EXPECT_TRUE(has(why, "tables: printed more often\n    undisturbed: printed once")) << why;
}

}  // namespace
}  // namespace settle
