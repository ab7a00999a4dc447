// Every order of the steps of two callers: one of them moves the row, ends the reservation, gets the rest.
#include <gtest/gtest.h>

#include "isolation/caller_specs.hpp"

namespace settle::isolation {
namespace {

using namespace std::chrono_literals;

class guard_isolation : public ::testing::Test, protected callers_world {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    open();
  }

  static void expect_passed(const exploration& done) {
    EXPECT_EQ(done.failure, "");
    EXPECT_GT(done.ran, 0);
  }
};

// Proves G1, V3
TEST_F(guard_isolation, of_two_movers_one_moves_and_the_other_learns_where_the_row_is) {
  expect_passed(movers_of_one_row(*this));
}

// Proves G5, V3
TEST_F(guard_isolation, what_expires_is_not_confirmed_and_what_is_confirmed_does_not_expire) {
  before_each([this] {
    auto tx = control().begin();
    seats.reserve(tx, "cart", {{1, 2}, {2, 1}}, 1min);
    tx.commit();
  });
  add("buyer", [this](transaction& tx) { return std::string(to_string(seats.confirm(tx, "cart").status)); });
  // Its clock is ahead: for it the time is over, for the buyer it is not.
  auto& sweeper = add_caller("sweeper", 2min);
  all().add("sweeper").call("release",
                            [&] { sweeper.said = std::to_string(seats.release_expired(*sweeper.db)); });
  auto& other = add_caller("other_sweeper", 2min);
  all().add("other_sweeper").call("release", [&] {
    other.said = std::to_string(seats.release_expired(*other.db));
  });
  int confirmed = 0, expired = 0;
  expect_passed(explore([&]() -> std::string {
    const auto status = reservation();
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
  }));
  EXPECT_GT(confirmed, 0);
  EXPECT_GT(expired, 0);
}

// Proves G5, V3
TEST_F(guard_isolation, what_is_cancelled_while_it_expires_is_given_back_once) {
  before_each([this] {
    auto tx = control().begin();
    seats.reserve(tx, "cart", {{1, 2}, {2, 1}}, 1min);
    tx.commit();
  });
  add("buyer", [this](transaction& tx) { return std::string(to_string(seats.cancel(tx, "cart").status)); });
  auto& sweeper = add_caller("sweeper", 2min);
  all().add("sweeper").call("release", [&] { seats.release_expired(*sweeper.db); });
  expect_passed(explore(
      [&] { return seats_left() == "3,3" && log_sum() == "0" ? std::string() : "seats " + seats_left(); }));
}

// Proves G5, V3
TEST_F(guard_isolation, two_baskets_in_opposite_order_neither_deadlock_nor_oversell) {
  expect_passed(baskets_in_opposite_order(*this));
}

// Proves G5, V3
TEST_F(guard_isolation, of_two_takers_of_the_rest_one_gets_it) { expect_passed(takers_of_the_rest(*this)); }

// Proves G5, V3
TEST_F(guard_isolation, one_id_reserves_once_however_its_calls_meet) {
  const auto reserving = [this](transaction& tx) {
    const auto done = seats.reserve(tx, "cart", {{1, 2}, {2, 2}}, 1min);
    return std::string(to_string(done.outcome)) + (done.repeated ? " before" : "");
  };
  add("first", reserving);
  add("again", reserving);
  add("gives_up", reserving, false);
  expect_passed(explore([this] {
    const auto both = said("first") + ", " + said("again");
    const bool one = both == "reserved, reserved before" || both == "reserved before, reserved";
    return one && seats_left() == "1,1" && log_sum() == "-4" ? std::string()
                                                             : both + ", seats " + seats_left();
  }));
}

}  // namespace
}  // namespace settle::isolation
