#include <fmt/format.h>

#include "isolation/outbox_specs.hpp"
#include "queries/outbox.hpp"

namespace settle::isolation {
namespace {

// One step of the ring, at a time when everything that is done is old enough to go.
const std::string turn = "select settle.turn_outbox_ring(4000000000000000, 0)";

// The relay's own statement, with its parameters filled in: the time, and that its commit is synced.
std::string tick() {
  std::string text(queries::outbox::write_tick.postgres);
  text.replace(text.find("$1"), 2, "0");
  text.replace(text.find("$2"), 2, "1");
  return "begin; " + text;
}

}  // namespace

// The leaf that the slow writer began with is closed and emptied around it.
void ring_against_a_slow_writer(outbox_world& in) {
  in.before_each("select emit('a', 'earlier')");
  in.writer("slow").sql("begin; select emit('k', 'slow')").sql("select emit('k', 'slower')").sql("commit");
  in.writer("ring").sql(turn).sql(fmt::format("begin; {}", turn)).sql("commit");
  in.relays().drains(1);
}

// A snapshot that is older than the lock does not show what has been committed to the leaf in between.
void ring_turned_with_an_old_snapshot(outbox_world& in) {
  in.before_each("select emit('a', 'earlier')");
  in.writer("slow").sql("begin; select emit('k', 'slow')").sql("commit");
  in.writer("ring")
      .sql(turn)
      .sql("begin isolation level repeatable read; select from settle.outbox_ticks")
      .sql(turn)
      .may_fail()
      .sql("commit");
  in.relays().drains(1);
}

// Its lease has run out by the other's clock. It does not know, and goes on wherever it was.
void replaced_relay(outbox_world& in) {
  in.allow_copies();
  in.before_each("select emit('k', 'first')");
  in.writer("writer").sql("select emit('k', 'second')");
  in.relays("zombie", {.pauses = {"relay.publish.before", "relay.progress.before"}}).runs(4);
  in.relays(
        "heir",
        {.pauses = {"relay.lease.before"}, .clock_ahead = std::chrono::hours(2), .begins_as_owner = false})
      .runs(3);
}

// Two ticks may hold the same snapshot or different ones, and be committed in either order.
void two_tickers(outbox_world& in) {
  in.writer("one").sql(tick()).called("ticks").sql("commit");
  in.writer("two").sql(tick()).called("ticks").sql("commit");
  in.writer("writer").sql("begin; select emit('k', 'event')").sql("commit");
  in.relays().runs(1);
}

// After a restore: writers begin before the rebase and wait for it, or the other way round. Relays stand
// still meanwhile.
void rebase_against_writers(outbox_world& in) {
  in.before_each("select emit('a', 'earlier')");
  in.writer("slow").sql("begin; select pg_current_xact_id()").sql("select emit('k', 'slow')").sql("commit");
  in.writer("other").sql("select emit('b', 'other')");
  in.writer("rebase").sql("begin; select settle.rebase_outbox()").sql("commit");
  in.relays("relay", {.begins_as_owner = false});
}

}  // namespace settle::isolation
