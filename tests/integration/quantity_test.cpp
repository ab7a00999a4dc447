// Counted quantities in tables of the user's, on both databases.
#include "settle/quantity.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <random>
#include <thread>

#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "support/own_tables.hpp"
#include "support/tcp_proxy.hpp"

namespace settle {

inline void PrintTo(take_outcome of, std::ostream* out) { *out << to_string(of); }
inline void PrintTo(add_outcome of, std::ostream* out) { *out << to_string(of); }

namespace {

using test::code_of;
using namespace std::chrono_literals;
using lines = std::vector<std::string>;
constexpr auto highest = std::numeric_limits<std::int64_t>::max();

struct counted : test::own_tables {
  void SetUp() override {
    test::own_tables::SetUp();
    if (IsSkipped()) return;
    run("create table products (sku text primary key, in_stock bigint)");
    run("insert into products values ('a', 10), ('b', 5), ('c', 0)");
  }

  static quantity_options stock_options() {
    return {.resource = "stock", .table = "products", .key = "sku", .column = "in_stock"};
  }

  std::int64_t left(const std::string& sku) {
    return number("select in_stock from products where sku = '" + sku + "'");
  }

  lines logged() {
    return rows(
        "select resource || ' ' || item || ' ' || cast(change as text) || ' ' || cast(after as text) || ' ' "
        "|| "
        "reason || ' ' || reference from " +
        table("quantity_log") + " order by id");
  }

  // The log explains every item: what there was, and its changes, make what there is.
  void expect_log_adds_up(const std::string& sku, std::int64_t initial) {
    EXPECT_EQ(number("select cast(coalesce(sum(change), 0) as bigint) from " + table("quantity_log") +
                     " where item = '" + sku + "'"),
              left(sku) - initial);
  }

  take_result take(const value& item, std::int64_t amount, const quantity_note& note = {}) {
    return in_transaction([&](transaction& tx) { return stock.take(tx, item, amount, note); });
  }
  add_result add(const value& item, std::int64_t amount) {
    return in_transaction([&](transaction& tx) { return stock.add(tx, item, amount); });
  }
  basket_result take_all(const std::vector<quantity_line>& all) {
    return in_transaction([&](transaction& tx) { return stock.take_all(tx, all, {.reference = "o-1"}); });
  }

  quantity stock{stock_options()};
};

// The seed's tests of its repository. Proves G5, V1
TEST_P(counted, what_is_there_can_be_taken_and_not_more) {
  auto got = take("a", 7, {.reason = "sold", .reference = "o-1"});
  EXPECT_EQ(got.outcome, take_outcome::taken);
  EXPECT_EQ(got.there, 3);
  got = take("a", 4);
  EXPECT_EQ(got.outcome, take_outcome::insufficient);
  EXPECT_EQ(got.there, 3);
  EXPECT_FALSE(got);
  EXPECT_EQ(take("a", 3).there, 0);
  EXPECT_EQ(take("a", 1).outcome, take_outcome::insufficient);
  EXPECT_EQ(take("no such", 1).outcome, take_outcome::missing);
  EXPECT_EQ(left("a"), 0);
  EXPECT_EQ(logged(), (lines{"stock a -7 3 sold o-1", "stock a -3 0  "}));
}

// Proves G5
TEST_P(counted, what_is_added_can_be_taken_again) {
  const auto put = add("c", 2);
  EXPECT_EQ(put.outcome, add_outcome::added);
  EXPECT_EQ(put.there, 2);
  EXPECT_TRUE(take("c", 2));
  EXPECT_EQ(add("no such", 1).outcome, add_outcome::missing);
  EXPECT_EQ(logged(), (lines{"stock c 2 2  ", "stock c -2 0  "}));
}

// Proves G5
TEST_P(counted, nothing_changes_and_nothing_is_logged_if_the_transaction_rolls_back) {
  {
    auto tx = db->begin();
    EXPECT_TRUE(stock.take(tx, "a", 1));
    const auto both = stock.take_all(tx, {{"a", 1}, {"b", 1}});
    EXPECT_TRUE(both);
  }
  EXPECT_EQ(left("a"), 10);
  EXPECT_EQ(left("b"), 5);
  EXPECT_TRUE(logged().empty());
}

// Proves G5
TEST_P(counted, a_basket_is_taken_whole_or_not_at_all) {
  auto done = take_all({{"b", 2}, {"a", 3}, {"b", 1}});
  EXPECT_EQ(done.outcome, take_outcome::taken);
  ASSERT_EQ(done.lines.size(), 3u);
  EXPECT_EQ(done.lines[0].there, 2);
  EXPECT_EQ(done.lines[1].there, 7);
  EXPECT_EQ(done.lines[2].there, 2);

  done = take_all({{"a", 1}, {"b", 3}});
  EXPECT_EQ(done.outcome, take_outcome::insufficient);
  EXPECT_EQ(done.lines[0].there, 7);
  EXPECT_EQ(done.lines[1].outcome, take_outcome::insufficient);
  EXPECT_EQ(done.lines[1].there, 2);

  done = take_all({{"a", 1}, {"b", 3}, {"x", 1}});
  EXPECT_EQ(done.outcome, take_outcome::missing);
  EXPECT_EQ(left("a"), 7);
  EXPECT_EQ(left("b"), 2);
  EXPECT_EQ(logged(), (lines{"stock a -3 7  o-1", "stock b -3 2  o-1"}));
}

// Proves G5
TEST_P(counted, the_minimum_is_where_it_is_declared) {
  auto options = stock_options();
  options.minimum = -2;
  options.maximum = 12;
  stock = quantity(options);
  EXPECT_EQ(take("c", 3).outcome, take_outcome::insufficient);
  EXPECT_EQ(take("c", 2).there, -2);
  EXPECT_EQ(add("a", 3).outcome, add_outcome::excessive);
  EXPECT_EQ(add("a", 2).there, 12);
  EXPECT_EQ(left("a"), 12);
}

// Proves G5
TEST_P(counted, integers_do_not_overflow) {
  EXPECT_EQ(add("a", highest).outcome, add_outcome::excessive);
  EXPECT_EQ(add("a", highest - 10).there, highest);
  EXPECT_EQ(add("a", 1).outcome, add_outcome::excessive);
  EXPECT_EQ(take("a", highest).there, 0);
  auto options = stock_options();
  options.minimum = std::numeric_limits<std::int64_t>::min();
  stock = quantity(options);
  EXPECT_EQ(take("a", highest).there, -highest);
  EXPECT_EQ(take("a", 2).outcome, take_outcome::insufficient);
  EXPECT_EQ(take("a", 1).there, options.minimum);
  EXPECT_EQ(take("a", 1).outcome, take_outcome::insufficient);
}

TEST_P(counted, what_should_not_have_been_asked_is_refused_before_anything_is_written) {
  for (const std::int64_t amount : {std::int64_t{0}, std::int64_t{-1}, -highest - 1}) {
    EXPECT_EQ(code_of([&] { take("a", amount); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { add("a", amount); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { take_all({{"b", 1}, {"a", amount}}); }), errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] { take(1.5, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { take_all({}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { take("a", 1, {.reference = std::string(256, 'x')}); }), errc::invalid_name);
  auto options = stock_options();
  options.minimum = 2;
  options.maximum = 1;
  EXPECT_EQ(code_of([&] { quantity{options}; }), errc::invalid_argument);
  EXPECT_TRUE(logged().empty());
}

// Proves G5
TEST_P(counted, a_check_at_start_finds_what_does_not_fit) {
  EXPECT_EQ(stock.check(*db), 0);
  run("insert into products values ('wrong', -1)");
  EXPECT_EQ(stock.check(*db), 1);
  run("create table weights (sku text primary key, kilos numeric)");
  run("insert into weights values ('a', 1.5)");
  const auto refused = [&](auto change) {
    auto options = stock_options();
    change(options);
    return code_of([&] { quantity(options).check(*db); });
  };
  EXPECT_EQ(refused([](auto& o) { o.table = "product"; }), errc::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.column = "stock"; }), errc::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.key = "id"; }), errc::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.table = "weights", o.column = "kilos"; }), errc::invalid_argument);
  auto options = stock_options();
  options.table = "weights";
  options.column = "kilos";
  stock = quantity(options);
  auto tx = db->begin();
  EXPECT_EQ(code_of([&] { stock.take(tx, "a", 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { stock.take_all(tx, {{"a", 1}}); }), errc::invalid_argument);
  tx.commit();
  EXPECT_EQ(number("select count(*) from weights where kilos = 1.5"), 1);
  EXPECT_TRUE(logged().empty());
}

TEST_P(counted, a_key_that_is_there_twice_and_a_null_give_nothing) {
  run("create table doubles (sku text, in_stock bigint)");
  run("insert into doubles values ('a', 5), ('a', 5), ('null', null)");
  auto options = stock_options();
  options.table = "doubles";
  stock = quantity(options);
  auto tx = db->begin();
  EXPECT_EQ(code_of([&] { stock.take(tx, "a", 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { stock.take_all(tx, {{"a", 1}}); }), errc::invalid_argument);
  EXPECT_EQ(stock.take(tx, "null", 1).outcome, take_outcome::missing);
  EXPECT_EQ(stock.take_all(tx, {{"null", 1}}).outcome, take_outcome::missing);
  tx.commit();
  EXPECT_EQ(number("select cast(sum(in_stock) as bigint) from doubles"), 10);
  EXPECT_TRUE(logged().empty());
}

// Proves G5
TEST_P(counted, a_change_that_a_trigger_suppresses_leaves_nothing_if_its_transaction_commits) {
  suppress_updates("products", "new.sku = 'b'");
  auto tx = db->begin();
  EXPECT_EQ(code_of([&] { stock.take(tx, "b", 1); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { stock.add(tx, "b", 1); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { stock.take_all(tx, {{"a", 1}, {"b", 1}}); }), errc::constraint_violated);
  EXPECT_TRUE(stock.take(tx, "a", 4)) << "the transaction is as good as before";
  tx.commit();
  EXPECT_EQ(left("a"), 6);
  EXPECT_EQ(left("b"), 5);
  EXPECT_EQ(logged().size(), 1u);
  expect_log_adds_up("a", 10);
}

// Proves G5
TEST_P(counted, two_spellings_of_one_key_cannot_take_it_twice) {
  run(on_postgres() ? "create table many (id bigint primary key, in_stock bigint)"
                    : "create table many (id text collate nocase primary key, in_stock bigint)");
  run("insert into many values ('7', 5)");
  run(on_postgres() ? "select 1" : "insert into many values ('a', 5)");
  stock = quantity({.resource = "many", .table = "many", .column = "in_stock"});
  const value one = on_postgres() ? "07" : "A", other = on_postgres() ? "7" : "a";
  auto tx = db->begin();
  EXPECT_EQ(code_of([&] { stock.take_all(tx, {{one, 3}, {other, 3}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { stock.reserve(tx, "both", {{one, 3}, {other, 3}}, 1min); }),
            errc::invalid_argument);
  EXPECT_EQ(stock.confirm(tx, "both").status, reservation_status::missing);
  EXPECT_TRUE(stock.take_all(tx, {{one, 3}}));
  EXPECT_TRUE(stock.take(tx, one, 1));
  EXPECT_TRUE(stock.reserve(tx, "cart", {{one, 1}}, 1min));
  EXPECT_TRUE(stock.reserve(tx, "cart", {{other, 1}}, 1min).repeated);
  EXPECT_EQ(stock.take(tx, other, 1).outcome, take_outcome::insufficient);
  tx.commit();
  EXPECT_EQ(number("select count(distinct item) from " + table("quantity_log")), 1);
}

// Proves G5
TEST_P(counted, fifty_at_once_take_the_last_ten_and_no_more) {
  constexpr int threads = 50, there = 10;
  const auto many = open(nullptr, threads);
  std::atomic<int> taken = 0, insufficient = 0, other = 0;
  std::barrier start(threads);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([&] {
        start.arrive_and_wait();
        auto tx = many->begin();
        const auto got = stock.take(tx, "a", 1, {.reason = "sold"});
        tx.commit();
        ++(got ? taken : got.outcome == take_outcome::insufficient ? insufficient : other);
      });
  }
  EXPECT_EQ(taken, there);
  EXPECT_EQ(insufficient, threads - there);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(left("a"), 0);
  EXPECT_EQ(logged().size(), static_cast<std::size_t>(there));
  expect_log_adds_up("a", there);
  EXPECT_EQ(number("select count(distinct after) from " + table("quantity_log")), there);
}

// Proves G5
TEST_P(counted, baskets_in_any_order_neither_deadlock_nor_oversell) {
  constexpr int threads = 8, rounds = 25;
  run("update products set in_stock = 100");
  const auto many = open(nullptr, threads);
  std::atomic<int> sold = 0, failures = 0;
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        std::minstd_rand random(static_cast<unsigned>(t) + 1);
        for (int i = 0; i < rounds; ++i) {
          std::vector<quantity_line> basket{{"a", 1}, {"b", 1}, {"c", 1}};
          std::shuffle(basket.begin(), basket.end(), random);
          try {
            auto tx = many->begin();
            const auto done = stock.take_all(tx, basket);
            tx.commit();
            if (done) ++sold;
          } catch (const error&) {
            ++failures;
          }
        }
      });
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(sold, 100);
  for (const auto* sku : {"a", "b", "c"}) {
    EXPECT_EQ(left(sku), 0);
    expect_log_adds_up(sku, 100);
  }
}

INSTANTIATE_TEST_SUITE_P(databases, counted, test::both_databases, test::database_name);

struct counted_on_postgres : counted {};
INSTANTIATE_TEST_SUITE_P(databases, counted_on_postgres, ::testing::Values(dialect::postgres),
                         test::database_name);

// Proves G5
TEST_P(counted_on_postgres, every_integer_type_and_a_domain_of_one_will_do) {
  run("create domain pieces as integer check (value >= 0)");
  run("create table many (id uuid primary key, s smallint, i integer, b bigint, d pieces)");
  const auto id = *uuid::parse("0192f0c0-0000-7000-8000-000000000001");
  run("insert into many values ('" + id.text() + "', 5, 5, 5, 5)");
  for (const auto* column : {"s", "i", "b", "d"}) {
    const quantity of({.resource = column, .table = "many", .column = column, .maximum = 32'767});
    EXPECT_EQ(of.check(*db), 0);
    in_transaction([&](transaction& tx) {
      EXPECT_EQ(of.take(tx, id, 2).there, 3);
      EXPECT_EQ(of.take_all(tx, {{id, 2}}).lines.at(0).there, 1);
      EXPECT_EQ(of.take(tx, id, 2).outcome, take_outcome::insufficient);
      return of.add(tx, id, 40'000).outcome;
    });
  }
  EXPECT_EQ(number("select s + i + b + d from many"), 4);
}

// Proves G5: what keeps a basket whole travels with its statements
TEST_P(counted_on_postgres, a_take_is_one_round_trip_and_a_basket_two) {
  test::tcp_proxy line("127.0.0.1", std::stoi(test::word_of(server->conninfo(), "port")));
  const auto address = "host=127.0.0.1 port=" + std::to_string(line.port()) + " sslmode=disable";
  const auto far = postgres::open(test::with(server->conninfo(), address), {.connections_max = 1});
  const auto trips = [&](auto&& work) {
    auto tx = far->begin();
    const auto before = line.round_trips();
    work(tx);
    tx.commit();
    return line.round_trips() - before;
  };
  const auto one = [&](transaction& tx) { EXPECT_TRUE(stock.take(tx, "a", 1)); };
  const auto two = [&](transaction& tx) { EXPECT_TRUE(stock.take_all(tx, {{"a", 1}, {"b", 1}})); };
  const auto cart = [&](transaction& tx) {
    EXPECT_TRUE(stock.reserve(tx, "cart", {{"a", 1}, {"b", 1}}, 1min));
  };
  trips(two);  // prepares its statements
  EXPECT_EQ(trips(one), 2u) << "with the commit";
  EXPECT_EQ(trips(two), 3u);
  EXPECT_EQ(trips(cart), 3u);
}

// Proves G5
TEST_P(counted_on_postgres, a_snapshot_that_is_too_old_is_a_retryable_error) {
  auto tx = db->begin();
  tx.execute("set transaction isolation level repeatable read");
  tx.execute("select 1 from products");
  EXPECT_TRUE(take("a", 1));
  EXPECT_EQ(code_of([&] { stock.take(tx, "a", 1); }), errc::store_busy);
  EXPECT_EQ(left("a"), 9);
}

}  // namespace
}  // namespace settle
