#include "webhook/applying.hpp"

#include "queries/webhook.hpp"
#include "retry/backoff.hpp"
#include "sql/undo_point.hpp"

namespace settle::hooks {
namespace {

std::optional<timestamp> lock_key(transaction& tx, const received& what) {
  const auto rows = tx.execute(queries::webhook::lock_key, {what.source, what.key, tx.env().now()});
  const auto& newest = rows[0][queries::webhook::lock_key_columns::newest_at];
  return newest.is_null() ? std::nullopt : std::optional(newest.time());
}

// What it publishes was caused by the webhook. In somebody's own transaction that must end with the handler.
class caused_by {
 public:
  caused_by(transaction& tx, const received& what) : tx_(tx), before_(tx.cause()) {
    auto cause = before_;
    cause.causation_id = what.id;
    tx.set_cause(std::move(cause));
  }
  ~caused_by() { tx_.set_cause(std::move(before_)); }
  caused_by(const caused_by&) = delete;
  caused_by& operator=(const caused_by&) = delete;

 private:
  transaction& tx_;
  origin before_;
};

// The handler's writes go back if it says anything but done.
answer run(transaction& tx, const taken& one, const handler& with) {
  sql::undo_point before(tx);
  const caused_by cause(tx, one.what);
  const auto said = with_fault_points(tx.env(), "webhook.handler", [&] { return with(one.what, tx); });
  if (said == answer::done)
    before.leave();
  else
    before.undo();
  return said;
}

void note_applied(transaction& tx, const received& what) {
  if (what.key.empty()) return;
  if (what.time) tx.post(queries::webhook::note_newest, {what.source, what.key, *what.time});
  const auto woken =
      tx.execute(queries::webhook::wake_parked, {what.source, what.key, tx.env().now()}).affected();
  if (woken > 0) tx.wake_on_commit();
}

outcome park(transaction& tx, const taken& one, const park_rule& rule) {
  const auto now = tx.env().now();
  if (now - one.waits_since >= rule.max_age) {
    set_outcome(tx, one.row, "FAILED", std::nullopt, now, "what has to come before it has not come");
    return outcome::failed;
  }
  set_outcome(tx, one.row, "PARKED", now + retry::doubling_wait(one.parks, rule.wait, rule.wait_max), now);
  tx.wake_on_commit();  // who sleeps must know that this one comes due
  return outcome::parked;
}

}  // namespace

bool is_stale(std::optional<timestamp> of, std::optional<timestamp> newest) {
  return of && newest && *of < *newest;
}

outcome apply_taken(transaction& tx, const taken& one, const handler& with, const park_rule& rule) {
  if (!one.what.key.empty()) {
    const auto newest = lock_key(tx, one.what);
    if (one.newest_only && is_stale(one.what.time, newest)) {
      set_outcome(tx, one.row, "STALE", std::nullopt, tx.env().now());
      return outcome::stale;
    }
  }
  switch (run(tx, one, with)) {
    case answer::done:
      note_applied(tx, one.what);
      return outcome::applied;
    case answer::not_yet:
      return park(tx, one, rule);
    case answer::ignore:
      break;
  }
  set_outcome(tx, one.row, "IGNORED", std::nullopt, tx.env().now());
  return outcome::ignored;
}

}  // namespace settle::hooks
