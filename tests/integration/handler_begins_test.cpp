// A handler that begins a transaction of its own on the consumer's database, on both databases. It would
// commit what its message's rollback cannot take back; on SQLite it would wait for itself.
#include <gtest/gtest.h>

#include <functional>
#include <stop_token>
#include <thread>

#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct handler_begins : test::failing_consumer {
  static void write(transaction& tx, const std::string& what) {
    tx.execute("insert into things_done (what) values ($1)", {what});
  }
  void write_on_its_own(const std::string& what) {
    auto own_one = db->begin();
    write(own_one, what);
    own_one.commit();
  }
  // Three messages; with the second one the handler also does this.
  std::unique_ptr<consumer> with_second(const std::function<void()>& deed, const handler_options& how = {}) {
    for (const auto* id : {"1", "2", "3"}) deliver(id, id);
    auto made = std::make_unique<consumer>(*db, broker, plain());
    made->on(
        "things", "thing.done",
        [deed](const message& m, transaction& tx) {
          write(tx, m.id);
          if (m.id == "2") deed();
        },
        how);
    return made;
  }
  names sorted_effects() {
    auto done = effects();
    std::ranges::sort(done);
    return done;
  }
};

// Proves C1, C3
TEST_P(handler_begins, is_refused_and_charged_to_its_message_alone) {
  auto c = with_second([&] { write_on_its_own("outside of the batch"); });
  drain_for(*c, 30s);
  EXPECT_EQ(sorted_effects(), (names{"1", "3"}));
  EXPECT_EQ(c->counts().pauses, 0) << "nothing is away";
  EXPECT_EQ(broker.acknowledged.size(), 3u);
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].what.id, "2");
  EXPECT_NE(letters[0].error.find("transaction_control"), std::string::npos) << letters[0].error;
  EXPECT_NE(letters[0].error.find("outside"), std::string::npos)
      << "it says what to do: " << letters[0].error;
}

// Proves C1
TEST_P(handler_begins, does_nothing_even_if_the_handler_ignores_the_error) {
  std::optional<errc> refused;
  auto c = with_second([&] { refused = test::code_of([&] { write_on_its_own("outside of the batch"); }); });
  drain_for(*c, 30s);
  EXPECT_EQ(refused, errc::transaction_control);
  const auto done = effects();
  EXPECT_EQ(std::ranges::count(done, "outside of the batch"), 0);
  EXPECT_EQ(std::ranges::count(done, "1") + std::ranges::count(done, "3"), 2);
  EXPECT_EQ(c->counts().pauses, 0);
}

// Proves C1
TEST_P(handler_begins, nothing_by_reading) {
  std::int64_t seen = -1;
  auto c = with_second([&] { seen = number("select count(*) from things_done"); });
  drain(*c);
  EXPECT_EQ(seen, 0) << "a snapshot without what is not committed";
  EXPECT_EQ(effects(), (names{"1", "2", "3"}));
  EXPECT_EQ(c->counts().failures, 0);
}

// Whoever else uses the database object is not in a handler. On SQLite it has to wait for its turn. Proves C1
TEST_P(handler_begins, is_refused_to_the_handlers_thread_alone) {
  std::optional<errc> bystanders;
  std::jthread bystander;
  auto c = with_second([&] {
    if (bystander.joinable()) return;
    bystander = std::jthread([&] { bystanders = test::code_of([&] { write_on_its_own("bystander"); }); });
    if (GetParam() == dialect::postgres) bystander.join();
  });
  drain(*c);
  if (bystander.joinable()) bystander.join();
  if (GetParam() == dialect::sqlite && bystanders) {
    EXPECT_EQ(bystanders, errc::store_busy);
  } else {
    EXPECT_EQ(bystanders, std::nullopt);
    EXPECT_EQ(sorted_effects(), (names{"1", "2", "3", "bystander"}));
  }
  EXPECT_EQ(c->counts().failures, 0);
}

// Who declares effects outside answers for them. On SQLite the transaction would wait for the handler's own.
// Proves C1
TEST_P(handler_begins, is_allowed_where_effects_outside_are_declared) {
  std::optional<errc> refused;
  auto c = with_second([&] { refused = test::code_of([&] { write_on_its_own("declared"); }); },
                       {.effects = handler_effects::outside});
  drain(*c);
  EXPECT_EQ(refused.has_value(), GetParam() == dialect::sqlite);
  const auto done = effects();
  EXPECT_EQ(std::ranges::count(done, "declared"), GetParam() == dialect::sqlite ? 0 : 1);
  EXPECT_EQ(std::ranges::count(done, "1") + std::ranges::count(done, "3"), 2);
}

// Between handlers, and when the consumer rests, its thread is free. Proves C1
TEST_P(handler_begins, is_allowed_again_after_the_handler) {
  auto c = with_second([] { throw handler_failed(failure_class::permanent, "no"); });
  drain(*c);
  EXPECT_EQ(test::code_of([&] { write_on_its_own("later"); }), std::nullopt);
  EXPECT_EQ(sorted_effects(), (names{"1", "3", "later"}));
}

INSTANTIATE_TEST_SUITE_P(databases, handler_begins, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
