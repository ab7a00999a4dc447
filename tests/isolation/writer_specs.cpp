#include <memory>

#include "isolation/outbox_specs.hpp"

namespace settle::isolation {

// Numbers are drawn in one order and committed in another. The last commit may be followed by silence.
void late_commit_with_a_lower_number(outbox_world& in) {
  in.writer("late").sql("begin; select emit('a', 'late')").sql("commit");
  in.writer("other").sql("begin; select emit('b', 'other')").sql("commit");
  in.relays().drains(3);
}

// The same, in the middle of the relay's work: a tick written and not committed, a window read and not
// published, progress written and not committed.
void commit_while_the_relay_is_at_work(outbox_world& in) {
  in.writer("late").sql("begin; select emit('a', 'late')").sql("commit");
  in.writer("other").sql("select emit('b', 'other')");
  in.relays("relay", {.pauses = {"relay.tick.before", "relay.publish.before", "relay.progress.before"}})
      .runs(6);
}

// A window is read one row at a time, while rows with lower and higher numbers become visible.
void paging_while_commits_arrive(outbox_world& in) {
  in.before_each("select emit('a', 'first')");
  in.writer("one").sql("begin; select emit('d', 'one'), emit('e', 'one more')").sql("commit");
  in.writer("two").sql("begin; select emit('f', 'two'), emit('g', 'two more')").sql("commit");
  relay_setup setup;
  setup.options.batch_max = 1;
  in.relays("relay", setup).runs(3);
}

// Transaction ids are drawn before the key's lock is held, so they say nothing about the order.
void one_key_in_lock_order(outbox_world& in) {
  for (const std::string name : {"one", "two"})
    in.writer(name)
        .sql("begin; select pg_current_xact_id()")
        .sql("select emit('k', '" + name + "')")
        .sql("commit");
  in.relays().drains(1);
}

void savepoints(outbox_world& in) {
  in.writer("undoes")
      .sql("begin; select emit('a', 'before')")
      .sql("savepoint s; select emit('k', 'undone')")
      .sql("rollback to s; select emit('a', 'after')")
      .sql("commit");
  in.writer("keeps").sql("begin; savepoint s; select emit('k', 'kept'); release s").sql("commit");
  in.relays().drains(1);
}

void prepared_transactions(outbox_world& in) {
  const auto name = test::word_of(in.conninfo(), "dbname");
  in.writer("commits")
      .sql("begin; select emit('k', 'kept')")
      .sql("prepare transaction '" + name + "-kept'")
      .sql("commit prepared '" + name + "-kept'");
  in.writer("gives-up")
      .sql("begin; select emit('k', 'undone'); prepare transaction '" + name + "-undone'")
      .sql("rollback prepared '" + name + "-undone'");
  in.relays().drains(2);
}

// What is published makes somebody publish in the same database, and others use up transaction ids.
void relay_that_also_writes(outbox_world& in) {
  in.on_publish([to = in.conninfo()](const std::string& key) {
    if (key == "ask") test::run_sql(to, "select emit('answer', 'yes')");
  });
  in.writer("asks").sql("begin; select emit('ask', 'may I')").sql("commit");
  in.writer("bystander").sql("begin; select pg_current_xact_id()").sql("commit");
  in.relays("relay", {.pauses = {"relay.tick.before", "relay.publish.before", "relay.progress.before"}})
      .runs(3);
}

}  // namespace settle::isolation
