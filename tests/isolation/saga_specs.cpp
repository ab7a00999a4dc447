#include "isolation/saga_specs.hpp"

#include "isolation/saga_types.hpp"
#include "isolation/sagas_world.hpp"

namespace settle::isolation {
namespace {

using namespace std::chrono_literals;
using test::booking;
using test::trip;

const auto flight = booking("flight");
const auto hotel = booking("hotel");
const auto car = booking("car");
const auto label = booking("label");
const auto refund = booking("refund");
const auto escalate = booking("escalate");

// Taken already: it fails when the server is asked, so that the tick goes down with it.
const auto seat = local("seat", [](transaction& tx, const trip&) {
                    tx.execute("insert into seats values ('taken')");
                  }).retry({.attempts_max = 1});

flow<> wait_for_arrival(saga& s, const trip& t) {
  co_await s.run(label, t);
  const auto came = co_await s.wait_for<arrival>(t.id, 120h);
  if (came) {
    co_await s.run(refund, t);
  } else {
    co_await s.run(escalate, t);
  }
}

flow<> wait_in_branch(saga s, const trip& t) {
  const auto came = co_await s.wait_for<arrival>(t.id);
  if (came) co_await s.run(refund, t);
}
flow<> sleep_in_branch(saga s, const trip& t) {
  co_await s.sleep(1s);
  co_await s.run(label, t);
  co_await s.sleep(120h);
}
flow<> wait_beside_sleep(saga& s, const trip& t) {
  auto one = wait_in_branch(s.branch(0), t);
  auto two = sleep_in_branch(s.branch(1), t);
  co_await s.all(one, two);
}

flow<> wait_without_seat(saga& s, const trip& t) {
  co_await s.run(label, t);
  const auto seated = co_await s.attempt(seat, t);
  if (!seated) co_await s.run(flight, t);
  const auto came = co_await s.wait_for<arrival>(t.id, 120h);
  if (came) co_await s.run(refund, t);
}

// The other side tells copies of a call by their key.
const sagas_world* other_side = nullptr;
const auto charge = remote("charge", [](call& c, const trip&) {
                      other_side->run("insert into bank (call_key, what) values ('" + c.key() +
                                      "', 'charge') on conflict do nothing");
                      host_actor::pause_here();
                    }).on_unknown(unknown::repeat);

flow<> be_charged(saga& s, const trip& t) {
  co_await s.run(flight, t);
  co_await s.run(charge, t);
  co_await s.run(hotel, t);
}

std::string must_be(const std::string& what, const std::string& found, const std::string& expected) {
  return found == expected ? "" : what + ": " + found + ", and not " + expected;
}

void start(host_actor& by, const saga_type<trip>& type) { by.host().start(type, "trip", trip{"trip"}); }

std::string events_left(const sagas_world& in) {
  return in.run("select count(*) from settle.saga_mailbox where no is null");
}

}  // namespace

const saga_type<trip> waiting_trip("waiting", 1, wait_for_arrival, {label, refund, escalate});
const saga_type<trip> branched_trip("branched", 1, wait_beside_sleep, {label, refund});
const saga_type<trip> seated_trip("seated", 1, wait_without_seat, {label, seat, flight, refund});
const saga_type<trip> plain_trip = saga_of<trip>("plain", 1, flight, hotel, car);
const saga_type<trip> charged_trip("charged", 1, be_charged, {flight, charge, hotel});

exploration early_event_and_wait() {
  sagas_world in;
  auto& host = in.add_host("host", {"saga.step.after", "saga.tick.before"}).runs(4);
  in.add_event();
  in.before_each = [&] {
    host.drain();
    start(host, waiting_trip);
  };
  in.check = [&] {
    return must_be("effects", in.status() + ": " + in.effects(), "COMPLETED: label, refund");
  };
  return in.explore();
}

exploration event_and_timeout() {
  sagas_world in;
  auto& host = in.add_host("host", {"saga.step.before", "saga.tick.before"}).runs(4);
  in.add_event();
  in.before_each = [&] {
    start(host, waiting_trip);
    host.drain();
    host.advance(120h + 1s);
  };
  in.check = [&] {
    const auto left = in.effects() + "; " + events_left(in);
    if (left == "label, refund; 0" || left == "label, escalate; 1")
      return must_be("status", in.status(), "COMPLETED");
    return "effects and events left: " + left;
  };
  return in.explore();
}

exploration event_and_other_branch() {
  sagas_world in;
  auto& host = in.add_host("host", {"saga.step.after", "saga.tick.before"}).runs(3);
  in.add_event();
  in.before_each = [&] {
    start(host, branched_trip);
    host.drain();
    host.advance(1s);
  };
  in.check = [&] {
    const auto found = in.effects();
    return found == "label, refund" || found == "refund, label" ? std::string() : "effects: " + found;
  };
  return in.explore();
}

exploration event_and_failed_tick() {
  sagas_world in;
  auto& host = in.add_host("host", {"saga.step.before", "saga.tick.before"}).runs(6);
  in.add_event();
  in.before_each = [&] {
    host.drain();
    start(host, seated_trip);
  };
  in.check = [&] {
    return must_be("effects", in.status() + ": " + in.effects(), "COMPLETED: label, flight, refund");
  };
  return in.explore();
}

exploration two_owners() {
  sagas_world in;
  auto& first = in.add_host("first", {"saga.step.after", "saga.tick.before"}).runs(4);
  in.add_host("second", {"saga.tick.before"}).runs(3);
  in.before_each = [&] {
    first.drain();
    start(first, plain_trip);
    in.replace_owner();
  };
  in.check = [&] {
    return must_be("effects", in.status() + ": " + in.effects(), "COMPLETED: flight, hotel, car");
  };
  return in.explore();
}

exploration take_over_of_a_call() {
  sagas_world in;
  auto& first = in.add_host("first", {"saga.tick.before"}).runs(4);
  auto& second = in.add_host("second", {}).runs(2);
  in.before_each = [&] {
    other_side = &in;
    first.drain();
    start(first, charged_trip);
    in.replace_owner();
  };
  in.check = [&]() -> std::string {
    // Unknown calls are repeated after a pause.
    for (int turns = 0; turns < 20 && in.status() == "RUNNING"; ++turns) {
      first.advance(1s);
      second.advance(1s);
      first.drain();
      second.drain();
    }
    return must_be("effects and charges",
                   in.status() + ": " + in.effects() + "; " + in.run("select count(*) from bank"),
                   "COMPLETED: flight, hotel; 1");
  };
  return in.explore();
}

exploration undo_and_late_action() {
  sagas_world in;
  in.run("create table said (who text, outcome text)");
  const auto asks = [&](const std::string& who, const std::string& op, int epoch) {
    in.all()
        .add(who)
        .sql("begin; insert into said select '" + who +
             "', outcome from settle.participate('01020300-0000-0000-0000-000000000000', 'charge', '" + op +
             "', " + std::to_string(epoch) + ")")
        .called(op)
        .sql("commit");
  };
  asks("action", "do", 1);
  asks("copy", "do", 2);
  asks("undo", "undo", 2);
  in.before_each = [&] { in.run("delete from said"); };
  in.check = [&]() -> std::string {
    const auto fresh = in.run("select count(*) from said where who <> 'undo' and outcome = 'fresh'");
    const auto undo = in.run("select outcome from said where who = 'undo'");
    return undo == (fresh == "1" ? "fresh" : "empty") && fresh <= "1"
               ? ""
               : fresh + " actions, and the undo is " + undo;
  };
  return in.explore();
}

}  // namespace settle::isolation
