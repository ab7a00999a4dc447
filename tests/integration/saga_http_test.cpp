// Sagas of HTTP steps against a participant that is made with our kit, on both databases.
#include <algorithm>
#include <thread>
#include <utility>

#include "settle/error.hpp"
#include "support/child_process.hpp"
#include "support/http_trips.hpp"
#include "support/shared_faults.hpp"
#include "support/stub_server.hpp"

namespace settle::test {
namespace {

struct http_sagas : saga_tests {
  static auto trip_over(const http::client& by) {
    return saga_of<trip>("http_trip", 1, http_booking("flight", by), http_booking("hotel", by),
                         http_booking("car", by));
  }

  // A host with one saga of one step over HTTP, whose answers a test writes.
  template <class Step>
  saga_id run_one(const Step& step, const std::string& id) {
    const auto type = saga_of<trip>("one_step", 1, step);
    saga_host host(*db, options());
    host.add(type);
    const auto started = host.start(type, id, trip{id});
    for (int turn = 0; turn < 40 && cell("status", started) != "COMPLETED"; ++turn) {
      drain(host);
      time.advance(1s);
    }
    return started;
  }

  http::client client{{.env = {.log = &log, .counters = &counters}}};
};

// Proves S1, S6, S7
TEST_P(http_sagas, run_their_steps_and_keep_their_results) {
  const trip_participant participant(*db, log, counters);
  const auto type = trip_over(client);
  saga_host host(*db, options());
  host.add(type);
  const auto id = host.start(type, "t1", trip{"t1"});
  drain(host);
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car"}));
  EXPECT_NE(cell("context", id).find("hotel of t1"), std::string::npos) << cell("context", id);
  EXPECT_EQ(counters.value("settle_http_client_connections_total", {}), 1);
}

// Proves S2, S6, S7
TEST_P(http_sagas, that_are_refused_are_undone_over_http) {
  const trip_participant participant(*db, log, counters);
  const auto type = trip_over(client);
  saga_host host(*db, options());
  host.add(type);
  const auto id = host.start(type, "t1", trip{"t1", "car:refuse"});
  drain(host);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "undo hotel", "undo flight"}));
  EXPECT_NE(cell("last_error", id).find("422 Unprocessable Content"), std::string::npos)
      << cell("last_error", id);
}

// Proves S4, S6
TEST_P(http_sagas, carry_one_key_an_epoch_and_a_trace_with_every_attempt) {
  stub_server stub([](stub_server::line& c) {
    while (c.request()) c.send(c.number() == 0 ? "HTTP/1.1 200 O" : "HTTP/1.1 204 No Content\r\n\r\n");
  });
  participant_at = stub.url("");
  http::client hasty({.time_max = 100ms, .env = {.log = &log, .counters = &counters}});
  const auto id = run_one(http_booking("flight", hasty), "t1");
  EXPECT_EQ(status(id), "COMPLETED");
  const auto asked = stub.requests();
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0], asked[1]) << "the same key, epoch, trace and body";
  for (const auto& part :
       {"Idempotency-Key: ", "Saga-Step: flight\r\n", "Saga-Op: do\r\n", "Saga-Epoch: ", "traceparent: 00-"})
    EXPECT_NE(asked[0].find(part), std::string::npos) << part << asked[0];
  EXPECT_NE(asked[0].find("Saga-Id: " + id.text()), std::string::npos);
  auto trace = id.text();
  std::erase(trace, '-');
  EXPECT_NE(asked[0].find("traceparent: 00-" + trace + "-"), std::string::npos) << "of the saga";
  EXPECT_TRUE(asked[0].ends_with("\r\n\r\nt1|")) << asked[0];
}

// Proves S6
TEST_P(http_sagas, wait_as_long_as_the_other_side_asks) {
  stub_server stub([](stub_server::line& c) {
    for (int n = 0; c.request(); ++n)
      c.send(n == 0 ? "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"
                    : "HTTP/1.1 204 No Content\r\n\r\n");
  });
  participant_at = stub.url("");
  const auto type = saga_of<trip>("one_step", 1, http_booking("flight", client));
  saga_host host(*db, options());
  host.add(type);
  const auto id = host.start(type, "t1", trip{"t1"});
  drain(host);
  time.advance(59s);
  drain(host);
  EXPECT_EQ(stub.requests().size(), 1U);
  EXPECT_NE(cell("last_error", id).find("429"), std::string::npos);
  time.advance(1s);
  drain(host);
  EXPECT_EQ(stub.requests().size(), 2U);
  EXPECT_EQ(status(id), "COMPLETED");
}

// Proves S2, S6
TEST_P(http_sagas, whose_step_gets_no_answer_in_time_undo_it_without_a_result) {
  stub_server stub([](stub_server::line& c) {
    while (const auto asked = c.request()) {
      if (asked->find("Saga-Op: do") != std::string::npos) return c.wait_for_end();
      c.send("HTTP/1.1 204 No Content\r\n\r\n");
    }
  });
  participant_at = stub.url("");
  const http::client hasty({.time_max = 50ms, .env = {.log = &log, .counters = &counters}});
  const auto type = saga_of<trip>("one_step", 1, http_booking("flight", hasty).retry({.attempts_max = 2}));
  saga_host host(*db, options());
  host.add(type);
  const auto id = host.start(type, "t1", trip{"t1"});
  for (int turn = 0; turn < 10; ++turn) {
    drain(host);
    time.advance(1s);
  }
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_NE(cell("last_error", id).find("late"), std::string::npos) << cell("last_error", id);
  const auto asked = stub.requests();
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_NE(asked[2].find("Saga-Op: undo"), std::string::npos);
}

// Proves S6
TEST_P(http_sagas, ask_a_url_what_became_of_a_call) {
  int looks = 0;
  stub_server stub([&](stub_server::line& c) {
    while (const auto asked = c.request()) {
      if (asked->starts_with("POST")) return;  // without an answer
      if (++looks < 3)
        c.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
      else
        c.answer("room 7");
    }
  });
  const auto asking = [&](const trip& t) { return stub.url("/" + t.id); };
  const auto step = http_post<trip, std::string>("hotel", client, stub.url("/"))
                        .on_unknown(unknown::ask, http_find<std::string>(client, asking));
  const auto id = run_one(step, "t1");
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_NE(cell("context", id).find("room 7"), std::string::npos);
  const auto asked = stub.requests();
  EXPECT_EQ(std::ranges::count_if(asked, [](const auto& one) { return one.starts_with("POST"); }), 1);
  EXPECT_EQ(looks, 3) << "that it is not there says nothing yet";
}

// Proves S7
TEST_P(http_sagas, are_answered_by_a_participant_as_its_guard_decides) {
  int runs = 0, status = 201;
  const auto route = http::participant(*db, [&](const auto&, const auto&, auto& tx) {
    note(tx, "p", "run");
    ++runs;
    return http::text(status, "text/x", "answer");
  });
  const auto ask = [&](const char* saga, const char* op, const char* epoch) {
    http::request asked{.method = "POST", .path = "/x"};
    asked.headers = {{"Saga-Id", saga}, {"Saga-Step", "charge"}, {"Saga-Op", op}, {"Saga-Epoch", epoch}};
    return route(asked);
  };
  const auto *one = "01000000-0000-0000-0000-000000000000", *two = "02000000-0000-0000-0000-000000000000",
             *three = "03000000-0000-0000-0000-000000000000";
  EXPECT_EQ(ask(one, "do", "2").status, 201);
  const auto again = ask(one, "do", "3");
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, "answer");
  EXPECT_EQ(again.headers.find("Content-Type"), "text/x");
  EXPECT_EQ(again.headers.find("Idempotent-Replayed"), "true");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(ask(one, "undo", "1").status, 412) << "stale";
  EXPECT_EQ(ask(two, "undo", "1").status, 204) << "nothing to undo";
  EXPECT_EQ(ask(two, "do", "1").status, 412) << "late";
  EXPECT_EQ(ask("x", "do", "1").status, 400);
  EXPECT_EQ(runs, 1);
  for (const int passing : {500, 503, 409, 429}) {
    status = passing;
    EXPECT_EQ(ask(three, "do", "1").status, passing);
  }
  status = 422;
  EXPECT_EQ(ask(three, "do", "1").status, 422);
  status = 201;
  EXPECT_EQ(ask(three, "do", "1").status, 422) << "a refusal stays";
  EXPECT_EQ(runs, 6);
  EXPECT_EQ(ask(three, "undo", "1").status, 204) << "it has left nothing to undo";
  EXPECT_EQ(runs, 6);
  EXPECT_EQ(effects("p"), texts{"run"});
}

struct crashing_http_sagas : http_sagas {
  void begin_anew() {
    run("delete from trip_effects; delete from " + table("sagas") + "; delete from " + table("saga_journal") +
        "; delete from " + table("saga_guards"));
  }

  // One process: the participant and a host with two sagas, until they have ended.
  void serve(database& on) {
    const trip_participant participant(on, log, counters);
    const http::client by({.env = on.env()});
    const auto type = trip_over(by);
    saga_host host(on, options());
    host.add(type);
    host.start(type, "good", trip{"good"});
    host.start(type, "bad", trip{"bad", "car:refuse"});
    const auto open = "select count(*) from " + table("sagas") + " where ended_at is null";
    for (int turn = 0; turn < 60 && on.read().execute(open)[0][0].integer() > 0; ++turn) {
      while (host.run_once()) {
      }
      time.advance(500ms);
    }
  }
};

// Proves S4, S7
TEST_P(crashing_http_sagas, at_any_fault_point_on_either_side_do_everything_once) {
  const auto explored = testing::explore({
      .prepare = [&] { begin_anew(); },
      .run =
          [&](fault_points& faults) {
            shared_faults guarded(faults, 2);
            serve(*open(&guarded));
          },
      .recover = [&] { serve(*open()); },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(effects("good"), (texts{"flight", "hotel", "car"})) << where;
            EXPECT_EQ(effects("bad"), (texts{"flight", "hotel", "undo hotel", "undo flight"})) << where;
            EXPECT_EQ(
                rows("select entity_id || ' ' || status from " + table("sagas") + " order by entity_id"),
                (texts{"bad COMPENSATED", "good COMPLETED"}))
                << where;
          },
  });
  for (const auto* point : {"saga.send.before", "http.send.before", "http.send.after",
                            "saga.participate.before", "saga.participate.after", "saga.participant.before",
                            "saga.participant.after", "saga.tick.before", "saga.tick.after"})
    EXPECT_TRUE(std::ranges::count(explored.points, point)) << point;
}

// With the clock of the machine, until it has ended there or a while has passed.
void run_for_real(database& own, const http::client& by, const std::function<bool()>& enough) {
  saga_host host(own, {.name = "trips", .call_threads = 1, .lease_ttl = 1s, .takeover_wait = 300ms});
  const auto type = saga_of<trip>("http_trip", 1, http_booking("flight", by));
  host.add(type);
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!enough() && std::chrono::steady_clock::now() < until) {
    try {
      if (host.run_once()) continue;
    } catch (const error&) {  // it was replaced
    }
    std::this_thread::sleep_for(20ms);
  }
}

// Proves S4, S7
TEST_P(crashing_http_sagas, that_are_taken_over_while_a_request_is_out_do_its_work_once) {
  if (!on_postgres()) GTEST_SKIP() << "on SQLite everybody waits for the one writer";
  auto books = postgres::open(shared->conninfo(), {.env = {.log = &log}});
  std::optional<child_process> first;
  saga_id id;
  {
    const auto type = saga_of<trip>("http_trip", 1, http_booking("flight", client));
    saga_host starter(*db, options());
    starter.add(type);
    id = starter.start(type, "t1", trip{"t1"});
  }
  // The participant stops the first owner while that one's request is at work.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  first.emplace([&] {
    char url[64] = {};
    if (::read(ends[0], url, sizeof url) <= 0) return 1;
    participant_at = url;
    quiet_log quiet;
    auto own = postgres::open(shared->conninfo(), {.env = {.log = &quiet}});
    const http::client by;
    run_for_real(*own, by, [] { return ::getppid() == 1; });
    return 0;
  });
  std::atomic<int> asked = 0;
  http::router routes;
  const auto guarded = http::participant(
      *books, [&](const auto& what, const auto& call, auto& tx) { return book("flight", what, call, tx); });
  routes.post("/flight", [&](const http::request& what) {
    if (asked++ > 0) return guarded(what);
    ::kill(first->pid(), SIGSTOP);
    while (asked < 2) std::this_thread::sleep_for(5ms);  // until the next owner asks too
    return guarded(what);
  });
  http::server server(std::move(routes), {.worker_threads = 4, .env = {.log = &log}});
  participant_at = "http://127.0.0.1:" + std::to_string(server.port());
  ASSERT_GT(::write(ends[1], participant_at.c_str(), participant_at.size() + 1), 0);
  while (asked == 0) std::this_thread::sleep_for(5ms);
  auto own = postgres::open(shared->conninfo(), {.env = {.log = &log}});
  run_for_real(*own, client, [&] { return status(id) != "RUNNING"; });
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), texts{"flight"});
  EXPECT_EQ(asked, 2);
  first->resume();
  first->kill();
  ::close(ends[0]);
  ::close(ends[1]);
}

INSTANTIATE_TEST_SUITE_P(databases, http_sagas, both_databases, database_name);
INSTANTIATE_TEST_SUITE_P(databases, crashing_http_sagas, both_databases, database_name);

}  // namespace
}  // namespace settle::test
