// Every order of the steps of two callers: one of them moves the row, ends the reservation, gets the rest.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>

#include "isolation/runner.hpp"
#include "settle/guard.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/quantity.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::isolation {
namespace {

using namespace std::chrono_literals;

class guard_isolation : public ::testing::Test {
 protected:
  // One caller: a connection under its session's name, and a clock of its own.
  struct caller {
    testing::manual_time time;
    std::unique_ptr<database> db;
    std::string said;  // by its last call
  };

  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own_.emplace();
    caller& first = add_caller("control");
    migrate(*first.db);
    own_->run(
        "create table orders (id int primary key, state text); create table seats (id int primary key, free "
        "int)");
    all_.emplace(own_->conninfo());
  }

  caller& add_caller(const std::string& name, duration ahead = {}) {
    auto& one = callers_[name];
    one.time.advance(ahead);
    const environment env{.time = &one.time, .log = &log_, .counters = &counters_};
    one.db = postgres::open(test::with(own_->conninfo(), "application_name=" + name),
                            {.env = env, .busy_timeout = 60s});
    return one;
  }

  // A session of two steps: the call in an open transaction, and its end.
  void add(const std::string& name, const std::function<std::string(transaction&)>& call,
           bool commits = true) {
    auto& one = add_caller(name);
    auto& as = all_->add(name);
    const auto action = [&one, &as, call, commits] {
      auto tx = one.db->begin();
      one.said = call(tx);
      as.pause();
      if (commits) tx.commit();
    };
    as.call("calls", action).call(commits ? "commits" : "rolls back", action);
  }

  void explore(const std::function<std::string()>& check) {
    const auto done = all_->explore({.reset = [this] { begin_anew(); }, .check = check});
    EXPECT_EQ(done.failure, "");
    EXPECT_GT(done.ran, 0);
    std::printf("             %d orders, %d more cannot happen\n", done.ran, done.impossible);
  }

  void begin_anew() {
    own_->run(
        "truncate orders, seats, settle.guard_history, settle.quantity_log, settle.reservations, "
        "settle.reservation_lines; insert into orders values (1, 'NEW'); insert into seats values (1, 3), "
        "(2, 3)");
    for (auto& [unused, one] : callers_) one.said.clear();
    if (before_each_) before_each_();
  }

  std::string state() { return own_->run("select string_agg(state, ',') from orders"); }
  std::string seats_left() { return own_->run("select string_agg(free::text, ',' order by id) from seats"); }
  std::string log_sum() { return own_->run("select coalesce(sum(change), 0) from settle.quantity_log"); }
  const std::string& said(const std::string& name) { return callers_.at(name).said; }

  std::optional<test::scratch_database> own_;
  test::quiet_log log_;
  metrics counters_;
  std::map<std::string, caller> callers_;
  std::optional<runner> all_;
  std::function<void()> before_each_;
  guard orders_{{.machine = "order",
                 .table = "orders",
                 .states = {"NEW", "PAID", "CANCELLED"},
                 .initial = {"NEW"},
                 .ends = {"PAID", "CANCELLED"},
                 .transitions = {{"NEW", "PAID"}, {"NEW", "CANCELLED"}}}};
  quantity seats_{{.resource = "seats", .table = "seats", .column = "free", .maximum = 1000}};
};

// Proves G1, V3
TEST_F(guard_isolation, of_two_movers_one_moves_and_the_other_learns_where_the_row_is) {
  const auto moving = [this](const char* to) {
    return [this, to](transaction& tx) {
      const auto done = orders_.move(tx, 1, to);
      return std::string(to_string(done.outcome)) + " " + done.state;
    };
  };
  add("payer", moving("PAID"));
  add("second", moving("PAID"));
  add("canceller", moving("CANCELLED"));
  explore([this]() -> std::string {
    const bool paid = state() == "PAID";
    int moved = 0;
    for (const auto* name : {"payer", "second"}) {
      moved += said(name) == "moved PAID";
      if (!paid && said(name) != "conflict CANCELLED") return std::string(name) + " was told " + said(name);
      if (paid && said(name) != "moved PAID" && said(name) != "unchanged PAID") return said(name);
    }
    moved += said("canceller") == "moved CANCELLED";
    if (paid && said("canceller") != "conflict PAID") return "the canceller was told " + said("canceller");
    if (moved != 1) return std::to_string(moved) + " have moved it";
    return own_->run("select count(*) from settle.guard_history") == "1" ? "" : "history";
  });
}

// Proves G5, V3
TEST_F(guard_isolation, what_expires_is_not_confirmed_and_what_is_confirmed_does_not_expire) {
  before_each_ = [this] {
    auto tx = callers_.at("control").db->begin();
    seats_.reserve(tx, "cart", {{1, 2}, {2, 1}}, 1min);
    tx.commit();
  };
  add("buyer", [this](transaction& tx) { return std::string(to_string(seats_.confirm(tx, "cart").status)); });
  // Its clock is ahead: for it the time is over, for the buyer it is not.
  auto& sweeper = add_caller("sweeper", 2min);
  all_->add("sweeper").call("release",
                            [&] { sweeper.said = std::to_string(seats_.release_expired(*sweeper.db)); });
  auto& other = add_caller("other_sweeper", 2min);
  all_->add("other_sweeper").call("release", [&] {
    other.said = std::to_string(seats_.release_expired(*other.db));
  });
  int confirmed = 0, expired = 0;
  explore([&]() -> std::string {
    const auto status = own_->run("select status from settle.reservations");
    const auto released = std::stoi(sweeper.said) + std::stoi(other.said);
    if (status == "CONFIRMED") {
      ++confirmed;
      if (said("buyer") != "confirmed" || released != 0 || seats_left() != "1,2" || log_sum() != "-3")
        return "confirmed, but " + said("buyer") + ", seats " + seats_left();
      return "";
    }
    ++expired;
    if (status != "EXPIRED" || said("buyer") != "expired" || released != 1 || seats_left() != "3,3" ||
        log_sum() != "0")
      return status + ", but " + said("buyer") + ", seats " + seats_left();
    return "";
  });
  EXPECT_GT(confirmed, 0);
  EXPECT_GT(expired, 0);
}

// Proves G5, V3
TEST_F(guard_isolation, what_is_cancelled_while_it_expires_is_given_back_once) {
  before_each_ = [this] {
    auto tx = callers_.at("control").db->begin();
    seats_.reserve(tx, "cart", {{1, 2}, {2, 1}}, 1min);
    tx.commit();
  };
  add("buyer", [this](transaction& tx) { return std::string(to_string(seats_.cancel(tx, "cart").status)); });
  auto& sweeper = add_caller("sweeper", 2min);
  all_->add("sweeper").call("release", [&] { seats_.release_expired(*sweeper.db); });
  explore(
      [&] { return seats_left() == "3,3" && log_sum() == "0" ? std::string() : "seats " + seats_left(); });
}

// Proves G5, V3
TEST_F(guard_isolation, two_baskets_in_opposite_order_neither_deadlock_nor_oversell) {
  const auto taking = [this](std::vector<quantity_line> basket) {
    return [this, basket](transaction& tx) {
      return std::string(to_string(seats_.take_all(tx, basket).outcome));
    };
  };
  add("left", taking({{1, 2}, {2, 2}}));
  add("right", taking({{2, 2}, {1, 2}}));
  explore([this] {
    const auto both = said("left") + " " + said("right");
    const bool one = both == "taken insufficient" || both == "insufficient taken";
    return one && seats_left() == "1,1" && log_sum() == "-4" ? std::string()
                                                             : both + ", seats " + seats_left();
  });
}

// Proves G5, V3
TEST_F(guard_isolation, one_id_reserves_once_however_its_calls_meet) {
  const auto reserving = [this](transaction& tx) {
    const auto done = seats_.reserve(tx, "cart", {{1, 2}, {2, 2}}, 1min);
    return std::string(to_string(done.outcome)) + (done.repeated ? " before" : "");
  };
  add("first", reserving);
  add("again", reserving);
  add("gives_up", reserving, false);
  explore([this] {
    const auto both = said("first") + ", " + said("again");
    const bool one = both == "reserved, reserved before" || both == "reserved before, reserved";
    return one && seats_left() == "1,1" && log_sum() == "-4" ? std::string()
                                                             : both + ", seats " + seats_left();
  });
}

}  // namespace
}  // namespace settle::isolation
