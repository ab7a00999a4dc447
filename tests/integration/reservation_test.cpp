// Reservations of quantities, on both databases.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

#include "settle/error.hpp"
#include "settle/quantity.hpp"
#include "support/expect_error.hpp"
#include "support/own_tables.hpp"

namespace settle {

inline void PrintTo(reserve_outcome of, std::ostream* out) { *out << to_string(of); }
inline void PrintTo(reservation_status of, std::ostream* out) { *out << to_string(of); }

namespace {

using test::code_of;
using namespace std::chrono_literals;
using lines = std::vector<std::string>;
using status = reservation_status;

struct reserved : test::own_tables {
  void SetUp() override {
    test::own_tables::SetUp();
    if (IsSkipped()) return;
    run("create table seats (id bigint primary key, free bigint)");
    run("insert into seats values (1, 10), (2, 5), (30, 1)");
  }

  reserve_result reserve(const std::string& id, const std::vector<quantity_line>& all,
                         duration for_long = 10min) {
    return in_transaction([&](transaction& tx) { return seats.reserve(tx, id, all, for_long); });
  }
  reservation_end confirm(const std::string& id) {
    return in_transaction([&](transaction& tx) { return seats.confirm(tx, id); });
  }
  reservation_end cancel(const std::string& id) {
    return in_transaction([&](transaction& tx) { return seats.cancel(tx, id); });
  }
  std::int64_t free(int id) { return number("select free from seats where id = " + std::to_string(id)); }
  std::string stored(const std::string& id) {
    const auto found = rows("select status from " + table("reservations") + " where id = '" + id + "'");
    return found.empty() ? "" : found[0];
  }
  lines logged() {
    return rows(
        "select item || ' ' || cast(change as text) || ' ' || cast(after as text) || ' ' || reason || ' ' || "
        "reference from " +
        table("quantity_log") + " order by id");
  }

  quantity seats{{.resource = "seats", .table = "seats", .column = "free"}};
};

// Proves G5
TEST_P(reserved, the_same_id_takes_once_and_says_the_same_again) {
  const auto first = reserve("cart", {{1, 2}, {2, 1}});
  EXPECT_EQ(first.outcome, reserve_outcome::reserved);
  EXPECT_EQ(first.status, status::held);
  EXPECT_FALSE(first.repeated);
  EXPECT_EQ(first.lines.at(0).there, 8);
  const auto again = reserve("cart", {{2, 1}, {1, 1}, {1, 1}}, 1h);
  EXPECT_EQ(again.outcome, reserve_outcome::reserved);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.expires_at, first.expires_at);
  EXPECT_EQ(free(1), 8);
  EXPECT_EQ(free(2), 4);
  EXPECT_EQ(logged(), (lines{"1 -2 8 reserved cart", "2 -1 4 reserved cart"}));
}

// Proves G5
TEST_P(reserved, the_same_id_with_other_lines_is_a_mismatch) {
  reserve("cart", {{1, 2}});
  for (const std::vector<quantity_line>& other :
       {std::vector<quantity_line>{{1, 3}}, {{2, 2}}, {{1, 2}, {2, 1}}})
    EXPECT_EQ(reserve("cart", other).outcome, reserve_outcome::mismatch);
  EXPECT_EQ(free(1), 8);
  EXPECT_EQ(free(2), 5);
}

// Proves G5
TEST_P(reserved, a_refused_one_takes_nothing_and_may_be_tried_again) {
  const auto refused = reserve("cart", {{1, 1}, {2, 6}});
  EXPECT_EQ(refused.outcome, reserve_outcome::insufficient);
  EXPECT_EQ(refused.lines.at(1).there, 5);
  EXPECT_EQ(reserve("cart", {{1, 1}, {9, 1}}).outcome, reserve_outcome::missing);
  EXPECT_EQ(confirm("cart").status, status::missing);
  EXPECT_TRUE(logged().empty());
  EXPECT_EQ(reserve("cart", {{1, 1}, {2, 5}}).outcome, reserve_outcome::reserved);
}

// Proves G5
TEST_P(reserved, confirming_keeps_what_was_taken) {
  reserve("cart", {{1, 2}});
  EXPECT_EQ(confirm("cart").status, status::confirmed);
  const auto again = confirm("cart");
  EXPECT_EQ(again.status, status::confirmed);
  EXPECT_FALSE(again.by_this_call);
  EXPECT_EQ(cancel("cart").status, status::confirmed);
  time.advance(1h);
  EXPECT_EQ(seats.release_expired(*db), 0u);
  EXPECT_EQ(confirm("cart").status, status::confirmed);
  EXPECT_EQ(reserve("cart", {{1, 2}}).outcome, reserve_outcome::reserved);
  EXPECT_EQ(free(1), 8);
  EXPECT_EQ(confirm("no such").status, status::missing);
}

// Proves G5
TEST_P(reserved, cancelling_gives_back_once) {
  reserve("cart", {{1, 2}, {2, 3}});
  EXPECT_TRUE(cancel("cart").by_this_call);
  const auto again = cancel("cart");
  EXPECT_EQ(again.status, status::cancelled);
  EXPECT_FALSE(again.by_this_call);
  EXPECT_EQ(confirm("cart").status, status::cancelled);
  EXPECT_EQ(reserve("cart", {{1, 2}, {2, 3}}).outcome, reserve_outcome::ended);
  EXPECT_EQ(free(1), 10);
  EXPECT_EQ(free(2), 5);
  EXPECT_EQ(logged(), (lines{"1 -2 8 reserved cart", "2 -3 2 reserved cart", "1 2 10 cancelled cart",
                             "2 3 5 cancelled cart"}));
}

// Proves G5
TEST_P(reserved, what_nobody_confirms_in_time_is_given_back_once) {
  reserve("early", {{1, 2}}, 1min);
  reserve("late", {{1, 3}}, 1h);
  EXPECT_EQ(seats.release_expired(*db), 0u);
  time.advance(1min);
  EXPECT_EQ(confirm("early").status, status::expired) << "before anybody has given it back";
  EXPECT_EQ(free(1), 5);
  const auto repeated = reserve("early", {{1, 2}}, 1min);
  EXPECT_EQ(repeated.outcome, reserve_outcome::ended);
  EXPECT_EQ(repeated.status, status::expired);
  EXPECT_EQ(seats.release_expired(*db), 1u);
  EXPECT_EQ(seats.release_expired(*db), 0u);
  EXPECT_EQ(confirm("early").status, status::expired);
  EXPECT_EQ(cancel("early").status, status::expired);
  EXPECT_EQ(free(1), 7);
  EXPECT_EQ(stored("late"), "HELD");
  EXPECT_EQ(counters.value("settle_reservations_expired_total", {{"resource", "seats"}}), 1);
}

// Proves G5
TEST_P(reserved, expiry_comes_in_slices_and_adds_up) {
  for (int i = 0; i < 9; ++i) {
    std::vector<quantity_line> cart{{1, 1}};
    if (i < 5) cart.push_back({2, 1});
    reserve("cart-" + std::to_string(i), cart, 1min);
  }
  EXPECT_EQ(free(1), 1);
  EXPECT_EQ(free(2), 0);
  time.advance(2min);
  EXPECT_EQ(seats.release_expired(*db, 4), 4u);
  reservation_expiry service(*db, seats, {.batch = 4});
  EXPECT_TRUE(service.run_once());
  EXPECT_TRUE(service.run_once());
  EXPECT_FALSE(service.run_once());
  EXPECT_EQ(free(1), 10);
  EXPECT_EQ(free(2), 5);
  EXPECT_EQ(number("select cast(sum(change) as bigint) from " + table("quantity_log")), 0);
  EXPECT_EQ(number("select max(after) from " + table("quantity_log") + " where item = '1'"), 10);
}

TEST_P(reserved, ended_ones_are_forgotten_in_the_end) {
  reserve("held", {{1, 1}}, std::chrono::hours(24 * 365));
  reserve("done", {{1, 1}});
  confirm("done");
  reservation_expiry service(*db, seats, {.keep_ended = 1h});
  EXPECT_FALSE(service.run_once());
  time.advance(2h);
  EXPECT_TRUE(service.run_once());
  EXPECT_FALSE(service.run_once());
  EXPECT_EQ(confirm("done").status, status::missing);
  EXPECT_EQ(stored("held"), "HELD");
  EXPECT_EQ(number("select count(*) from " + table("reservation_lines")), 1);
}

// Proves G5
TEST_P(reserved, what_cannot_be_given_back_is_in_the_log_and_stops_nobody) {
  seats = quantity({.resource = "seats", .table = "seats", .column = "free", .maximum = 10});
  reserve("gone", {{30, 1}}, 1min);
  reserve("full", {{1, 4}}, 1min);
  reserve("good", {{2, 1}}, 1min);
  run("delete from seats where id = 30; update seats set free = 8 where id = 1");
  time.advance(1min);
  EXPECT_EQ(seats.release_expired(*db), 3u);
  EXPECT_EQ(free(1), 8);
  EXPECT_EQ(free(2), 5);
  const auto all = logged();
  EXPECT_NE(std::ranges::find(all, "30 0 0 expired, not returned: there is no such item gone"), all.end());
  EXPECT_NE(std::ranges::find(all, "1 0 8 expired, not returned: it would be above the maximum full"),
            all.end());
  EXPECT_EQ(log.count("reservation_line_not_returned"), 2u);
}

// Proves G5
TEST_P(reserved, one_that_a_constraint_keeps_from_returning_does_not_hold_up_the_others) {
  run("create table few (id bigint primary key, free bigint check (free <= 5))");
  run("insert into few values (1, 5), (2, 5)");
  seats = quantity({.resource = "few", .table = "few", .column = "free"});
  reserve("bad", {{1, 2}}, 1min);
  reserve("good", {{2, 2}}, 2min);
  run("update few set free = 5 where id = 1");
  time.advance(5min);
  EXPECT_EQ(seats.release_expired(*db), 1u);
  EXPECT_EQ(number("select free from few where id = 2"), 5);
  EXPECT_EQ(stored("bad"), "HELD");
  EXPECT_EQ(log.count("reservation_not_released"), 1u);
  EXPECT_EQ(seats.release_expired(*db), 0u) << "not again at once";
  EXPECT_EQ(confirm("bad").status, status::expired);
  run("update few set free = 3 where id = 1");
  time.advance(1min);
  EXPECT_EQ(seats.release_expired(*db), 1u);
  EXPECT_EQ(number("select free from few where id = 1"), 5);
}

// Proves G5: PostgreSQL has a code of its own for what a trigger refuses
TEST_P(reserved, one_that_a_trigger_keeps_from_returning_does_not_hold_up_the_others) {
  reserve("bad", {{1, 2}}, 1min);
  reserve("good", {{2, 2}}, 2min);
  run(on_postgres()
          ? "create function closed() returns trigger language plpgsql as $$ begin raise exception 'closed'; "
            "end $$; create trigger closed before update on seats for each row when (new.id = 1) execute "
            "function closed()"
          : "create trigger closed before update on seats when new.id = 1 begin select raise(abort, "
            "'closed'); end");
  time.advance(5min);
  EXPECT_EQ(seats.release_expired(*db), 1u);
  EXPECT_EQ(free(2), 5);
  EXPECT_EQ(stored("bad"), "HELD");
  EXPECT_EQ(log.count("reservation_not_released"), 1u);
  EXPECT_EQ(seats.release_expired(*db), 0u) << "not again at once";
  EXPECT_EQ(log.count("reservation_not_released"), 1u);
  run(on_postgres() ? "drop trigger closed on seats" : "drop trigger closed");
  time.advance(1min);
  EXPECT_EQ(seats.release_expired(*db), 1u);
  EXPECT_EQ(free(1), 10);
}

// Proves G5
TEST_P(reserved, what_keeps_all_of_them_from_returning_is_logged_once) {
  for (int i = 1; i <= 3; ++i) reserve("cart-" + std::to_string(i), {{1, 1}}, 1min);
  run(on_postgres()
          ? "create function closed() returns trigger language plpgsql as $$ begin raise exception 'closed'; "
            "end $$; create trigger closed before update on seats for each row execute function closed()"
          : "create trigger closed before update on seats begin select raise(abort, 'closed'); end");
  time.advance(5min);
  EXPECT_EQ(seats.release_expired(*db), 0u);
  EXPECT_EQ(log.count("reservation_not_released"), 1u);
  EXPECT_EQ(log.count("reservation_not_released resource=seats reservation=cart-1 reservations=3"), 1u);
  EXPECT_EQ(seats.release_expired(*db), 0u) << "not again at once";
  EXPECT_EQ(log.count("reservation_not_released"), 1u);
  run(on_postgres() ? "drop trigger closed on seats" : "drop trigger closed");
  time.advance(1min);
  EXPECT_EQ(seats.release_expired(*db), 3u);
}

// Proves G5
TEST_P(reserved, a_change_that_a_trigger_suppresses_leaves_no_half_of_a_reservation) {
  reserve("kept", {{1, 2}, {2, 2}});
  const auto before = logged();
  suppress_updates("seats", "new.id = 2");
  auto tx = db->begin();
  tx.execute("insert into seats values (40, 7)");
  EXPECT_EQ(code_of([&] { seats.reserve(tx, "cart", {{1, 1}, {2, 1}}, 1min); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { seats.cancel(tx, "kept"); }), errc::constraint_violated);
  EXPECT_TRUE(seats.reserve(tx, "other", {{40, 1}}, 1min)) << "the transaction is as good as before";
  tx.commit();
  EXPECT_EQ(free(1), 8);
  EXPECT_EQ(free(2), 3);
  EXPECT_EQ(free(40), 6);
  EXPECT_EQ(stored("cart"), "");
  EXPECT_EQ(stored("kept"), "HELD");
  EXPECT_EQ(number("select count(*) from " + table("reservation_lines") + " where reservation = 'cart'"), 0);
  EXPECT_EQ(logged().size(), before.size() + 1);
}

// Proves G5
TEST_P(reserved, of_many_calls_with_one_id_one_takes) {
  constexpr int threads = 16;
  const auto many = open(nullptr, threads);
  std::atomic<int> fresh = 0, repeated = 0;
  std::barrier start(threads);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([&] {
        start.arrive_and_wait();
        auto tx = many->begin();
        const auto done = seats.reserve(tx, "cart", {{1, 2}, {2, 2}}, 1min);
        tx.commit();
        if (done) ++(done.repeated ? repeated : fresh);
      });
  }
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(repeated, threads - 1);
  EXPECT_EQ(free(1), 8);
  EXPECT_EQ(logged().size(), 2u);
}

// Proves G5
TEST_P(reserved, reserving_confirming_cancelling_and_expiring_at_once_adds_up) {
  constexpr int threads = 6, rounds = 20;
  run("update seats set free = 1000");
  const auto many = open(nullptr, threads + 1);
  std::atomic<std::int64_t> kept = 0;
  std::atomic<bool> done = false;
  {
    std::jthread expiry([&] {
      while (!done) {
        time.advance(100ms);
        seats.release_expired(*many, 5);
      }
    });
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (int i = 0; i < rounds; ++i) {
          const auto id = std::to_string(t) + "-" + std::to_string(i);
          auto tx = many->begin();
          EXPECT_TRUE(seats.reserve(tx, id, {{t % 2 + 1, 1}, {2 - t % 2, 2}}, 300ms)) << id;
          tx.commit();
          auto end = many->begin();
          const auto ended = i % 3 == 0 ? seats.cancel(end, id) : seats.confirm(end, id);
          end.commit();
          if (ended.status == status::confirmed) kept += 3;
        }
      });
    all.clear();
    done = true;
  }
  time.advance(1h);
  while (seats.release_expired(*db) > 0) {
  }
  EXPECT_EQ(free(1) + free(2) + kept, 2000);
  EXPECT_EQ(number("select cast(coalesce(sum(change), 0) as bigint) from " + table("quantity_log")), -kept);
  EXPECT_EQ(number("select count(*) from " + table("reservations") + " where status = 'HELD'"), 0);
}

TEST_P(reserved, what_should_not_have_been_asked_is_refused) {
  EXPECT_EQ(code_of([&] { reserve("", {{1, 1}}); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { reserve("cart", {}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { reserve("cart", {{1, 1}}, 0s); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { reserve("cart", {{1, 1}}, duration::max()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { confirm(std::string(256, 'x')); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { seats.release_expired(*db, 0); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { reservation_expiry(*db, seats, {.poll = 0s}); }), errc::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(databases, reserved, test::both_databases, test::database_name);

// Where rows are locked, not files.
struct reserved_on_postgres : reserved {};
INSTANTIATE_TEST_SUITE_P(databases, reserved_on_postgres, ::testing::Values(dialect::postgres),
                         test::database_name);

// Proves G5
TEST_P(reserved_on_postgres, an_item_that_somebody_keeps_locked_holds_up_no_other) {
  for (int i = 1; i <= 3; ++i) reserve("stuck-" + std::to_string(i), {{1, 2}}, 1min);
  reserve("good", {{2, 2}}, 2min);
  time.advance(5min);
  auto idle = db->begin();
  idle.execute("select 1 from seats where id = 1 for update");
  EXPECT_EQ(seats.release_expired(*db), 1u);
  EXPECT_EQ(free(2), 5);
  EXPECT_EQ(stored("stuck-1"), "HELD");
  EXPECT_EQ(log.count("reservation_held_up resource=seats reservation=stuck-1 reservations=3"), 1u);
  EXPECT_EQ(log.count("reservation_not_released"), 0u);
  EXPECT_EQ(seats.release_expired(*db), 0u) << "not again at once";
  idle.rollback();
  time.advance(1min);
  EXPECT_EQ(seats.release_expired(*db), 3u);
  EXPECT_EQ(free(1), 10);
}

// A buyer of one of its items holds up both of them in the middle. Proves G5
TEST_P(reserved_on_postgres, a_repeated_call_and_the_end_of_its_reservation_do_not_deadlock) {
  reserve("cart", {{1, 2}, {2, 1}});
  const auto await_waiting = [&](int sessions) {
    while (number("select count(*) from pg_stat_activity where datname = current_database() and "
                  "wait_event_type = 'Lock'") < sessions)
      std::this_thread::yield();
  };
  auto buyer = db->begin();
  EXPECT_TRUE(seats.take(buyer, 2, 1));
  std::optional<reserve_outcome> again;
  std::optional<status> ended;
  {
    const std::jthread repeating([&] { EXPECT_NO_THROW(again = reserve("cart", {{1, 2}, {2, 1}}).outcome); });
    await_waiting(1);
    const std::jthread ending([&] { EXPECT_NO_THROW(ended = cancel("cart").status); });
    await_waiting(2);
    buyer.commit();
  }
  EXPECT_EQ(again, reserve_outcome::reserved);
  EXPECT_EQ(ended, status::cancelled);
  EXPECT_EQ(free(1), 10);
  EXPECT_EQ(free(2), 4);
}

}  // namespace
}  // namespace settle
