// The bugs of sagas that the zoo keeps, found as the real code is checked. Those that take several sessions
// are found by isolation specs (tests/isolation/zoo_saga_isolation_test.cpp).
#include <gtest/gtest.h>

#include <thread>

#include "base/zoo.hpp"
#include "settle/error.hpp"
#include "settle/saga.hpp"
#include "support/saga_world.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

// Charges, hears nothing, and is tried again until there are no attempts left.
std::int64_t charged = 0, refunded = 0;
const auto charge = remote("charge", [](call&, const trip&) {
                      charged = 1;
                      throw std::runtime_error("the answer was lost");
                    }).undo([](call&, const trip&) {
                        refunded = 1;
                      }).retry({.attempts_max = 2});
const auto flight = booking("flight");
const auto hotel = booking("hotel");
const auto unheard_trip = saga_of<trip>("unheard_trip", 1, flight, charge);

flow<> wait_a_week(saga& s, const trip& t) {
  co_await s.run(flight, t);
  co_await s.sleep(7 * 24h);
  co_await s.run(hotel, t);
}
const saga_type patient_trip("patient_trip", 1, wait_a_week, {flight, hotel});

int times_run = 0;
const auto counted = local("counted", [](transaction& tx, const trip& t) {
  ++times_run;
  note(tx, t.id, "counted");
});
const auto counted_trip = saga_of<trip>("counted_trip", 1, counted);

struct zoo_sagas : saga_tests {
  void TearDown() override { zoo::present = zoo::bug::none; }

  void drain_for(saga_host& host, duration time_passes, duration at_once) {
    for (duration passed{}; passed < time_passes; passed += at_once) {
      drain(host);
      time.advance(at_once);
    }
    drain(host);
  }

  // What has been taken and not given back by a saga that was undone.
  std::int64_t taken_with(zoo::bug which) {
    zoo::present = which;
    charged = refunded = 0;
    saga_host host(*db, options());
    host.add(unheard_trip);
    const auto entity = std::to_string(static_cast<int>(which));
    const auto id = host.start(unheard_trip, entity, trip{entity});
    drain_for(host, 10s, 500ms);
    EXPECT_EQ(status(id), "COMPENSATED");
    host.leave();
    zoo::present = zoo::bug::none;
    return charged - refunded;
  }

  // After a week and some, in which the process was restarted every day.
  std::string status_with(zoo::bug which) {
    zoo::present = which;
    const auto entity = std::to_string(static_cast<int>(which));
    saga_id id;
    for (int day = 0; day <= 8; ++day) {
      saga_host host(*db, options());
      host.add(patient_trip);
      if (day == 0) id = host.start(patient_trip, entity, trip{entity});
      drain(host);
      host.leave();
      time.advance(24h);
    }
    zoo::present = zoo::bug::none;
    return status(id);
  }

  // How often a step runs whose COMMIT has reached the server, which is slow, when the line breaks.
  int runs_with(zoo::bug which) {
    zoo::present = which;
    times_run = 0;
    tcp_proxy line("127.0.0.1", std::stoi(word_of(shared->conninfo(), "port")));
    class breaking_line final : public fault_points {
     public:
      explicit breaking_line(tcp_proxy& line) : line_(line) {}
      void reached(std::string_view point) override {
        if (point != "saga.tick.before" || std::exchange(broken_, true)) return;
        breaker_ = std::jthread([this] {
          std::this_thread::sleep_for(300ms);  // the server is in the middle of its COMMIT
          line_.cut_all();
        });
      }

     private:
      tcp_proxy& line_;
      bool broken_ = false;
      std::jthread breaker_;
    } breaks(line);
    const environment env{.time = &time, .log = &log, .counters = &counters, .faults = &breaks};
    const auto through = postgres::open(
        with(shared->conninfo(), "host=127.0.0.1 port=" + std::to_string(line.port()) + " sslmode=disable"),
        {.env = env});
    saga_host host(*through, options());
    host.add(counted_trip);
    const auto entity = std::to_string(static_cast<int>(which));
    const auto id = host.start(counted_trip, entity, trip{entity});
    for (int turns = 0; turns < 50 && status(id) != "COMPLETED"; ++turns) {
      try {
        host.run_once();
      } catch (const error&) {  // the line is cut
      }
    }
    EXPECT_EQ(status(id), "COMPLETED");
    EXPECT_EQ(effects(entity), texts{"counted"});
    zoo::present = zoo::bug::none;
    return times_run;
  }
};

// Proves V3, S2
TEST_P(zoo_sagas, whose_undo_skips_the_unknown_are_found_with_money_taken) {
  EXPECT_EQ(taken_with(zoo::bug::none), 0);
  EXPECT_EQ(taken_with(zoo::bug::undo_skips_the_unknown), 1);
}

// Proves V3, S3
TEST_P(zoo_sagas, whose_deadline_is_recomputed_are_found_waiting_after_it) {
  EXPECT_EQ(status_with(zoo::bug::none), "COMPLETED");
  EXPECT_EQ(status_with(zoo::bug::deadline_recomputed), "RUNNING");
}

// Proves V3, S4
TEST_P(zoo_sagas, whose_journal_is_read_while_a_commit_is_in_doubt_are_found_running_a_step_again) {
  if (!on_postgres()) GTEST_SKIP() << "no server commits for a client that has gone";
  run("create function commit_slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(1); "
      "return "
      "null; end $$; create constraint trigger slowly after insert on trip_effects deferrable initially "
      "deferred "
      "for each row execute function commit_slowly()");
  EXPECT_EQ(runs_with(zoo::bug::none), 1);
  EXPECT_EQ(runs_with(zoo::bug::doubt_read_without_fence), 2);
  run("drop trigger slowly on trip_effects; drop function commit_slowly()");
}

INSTANTIATE_TEST_SUITE_P(databases, zoo_sagas, both_databases, database_name);

}  // namespace
}  // namespace settle::test
