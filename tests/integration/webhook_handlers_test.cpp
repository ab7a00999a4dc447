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

// What only PostgreSQL lets a session do.
struct webhook_handlers_on_postgres : webhook_handlers {
  void SetUp() override {
    webhook_handlers::SetUp();
    if (IsSkipped()) return;
    own->run("create table seen (setting text)");
    own->run(
        "create function look() returns trigger language plpgsql as $$ begin "
        "insert into seen values (current_setting('synchronous_commit')); return null; end $$");
    for (const std::string table : {"effect_log", "settle.webhook_events"})
      own->run("create constraint trigger at_commit after insert on " + table +
               " deferrable initially deferred for each row execute function look()");
  }
};
INSTANTIATE_TEST_SUITE_P(databases, webhook_handlers_on_postgres, ::testing::Values(dialect::postgres),
                         test::dialect_name);

// 200 follows, and with it the event is over for its provider. Proves A3
TEST_P(webhook_handlers_on_postgres, cannot_make_a_commit_less_durable_neither_theirs_nor_a_later_one) {
  webhook::worker one(*db);
  int n = 0;
  for (const std::string sql : {"set synchronous_commit = off", "set local synchronous_commit = off",
                                "select set_config('synchronous_commit', 'off', false)",
                                "select set_config('synchronous_commit', 'local', true)"}) {
    const auto lowering = [sql](const received& event, transaction& tx) {
      tx.execute(sql);
      return log_effect(event, tx);
    };
    const auto id = std::to_string(++n);
    EXPECT_EQ(apply(payment("at once " + id, "t", "k"), lowering).what, outcome::applied);
    deliver(payment("journaled " + id, "t", "k"));
    one.on("payments", "", lowering);
    drain(one);
    EXPECT_EQ(status("journaled " + id), "APPLIED");
    deliver(payment("later " + id, "t", "k"));
    EXPECT_EQ(own->run("select string_agg(distinct setting, ' ') from seen"), "on") << sql;
  }
}

}  // namespace
}  // namespace settle
