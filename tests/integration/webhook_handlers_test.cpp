// What handlers of webhooks may not do to the transaction that they share with the journal, on both
// databases.
#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "support/webhook_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using webhook::answer;
using webhook::outcome;
using webhook::received;

struct webhook_handlers : test::webhook_world {
  void write_on_its_own() {
    auto own_one = db->begin();
    own_one.execute("insert into effect_log (event, kind) values ('on its own', 't')");
    own_one.commit();
  }
  answer begin_another(const received& event, transaction& tx) {
    log_effect(event, tx);
    write_on_its_own();
    return answer::done;
  }
  webhook::handler beginning() {
    return [this](const received& event, transaction& tx) { return begin_another(event, tx); };
  }
};

// It would commit what a rollback cannot take back; on SQLite it would wait for itself. Proves A3
TEST_P(webhook_handlers, may_not_begin_another_transaction_on_the_same_database) {
  const auto said = apply(payment("at once", "t", "k"), beginning());
  EXPECT_EQ(said.what, outcome::failed);
  EXPECT_NE(said.error.find("transaction_control"), std::string::npos) << said.error;
  deliver(payment("journaled", "t", "k"));
  webhook::worker one(*db, {.attempts_max = 1});
  one.on("payments", "", beginning());
  drain(one);
  EXPECT_EQ(status("journaled"), "FAILED");
  const auto last = webhook::find(*db, "payments", "journaled")->last_error;
  EXPECT_NE(last.find("transaction_control"), std::string::npos) << last;
  EXPECT_EQ(effects(), 0);
  EXPECT_EQ(test::code_of([&] { write_on_its_own(); }), std::nullopt) << "after the handler";
}

INSTANTIATE_TEST_SUITE_P(databases, webhook_handlers, ::testing::Values(dialect::sqlite, dialect::postgres),
                         test::dialect_name);

}  // namespace
}  // namespace settle
