// From a request to an HTTP status.
#include <fmt/format.h>

#include <mutex>

#include "base/log_limit.hpp"
#include "base/text.hpp"
#include "base/zoo.hpp"
#include "queries/sql.hpp"
#include "queries/webhook.hpp"
#include "retry/judge.hpp"
#include "settle/error.hpp"
#include "settle/failure.hpp"
#include "settle/metrics.hpp"
#include "settle/webhook.hpp"
#include "sql/handler_scope.hpp"
#include "sql/undo_point.hpp"
#include "webhook/applying.hpp"
#include "webhook/reading.hpp"

namespace settle::inline v0::webhook {
namespace {

namespace insert_columns = queries::webhook::insert_event_columns;

constexpr std::int64_t refusal_lines_per_second = 5;  // anybody can send something that is refused
constexpr std::size_t error_bytes_max = 1000;
constexpr std::string_view no_exception = "something was thrown that is no std::exception";

struct outcome_entry {
  outcome what;
  std::string_view name;
  int status;
};
constexpr outcome_entry outcomes[] = {
    {outcome::journaled, "journaled", 200}, {outcome::applied, "applied", 200},
    {outcome::parked, "parked", 200},       {outcome::ignored, "ignored", 200},
    {outcome::stale, "stale", 200},         {outcome::too_late, "too_late", 200},
    {outcome::duplicate, "duplicate", 200}, {outcome::no_event_id, "no_event_id", 400},
    {outcome::refused, "refused", 401},     {outcome::too_large, "too_large", 413},
    {outcome::failed, "failed", 500},       {outcome::unavailable, "unavailable", 503},
};

const outcome_entry& entry_of(outcome of) {
  for (const auto& one : outcomes)
    if (one.what == of) return one;
  return outcomes[std::size(outcomes) - 1];
}

decision decide(outcome what, std::string event_id = {}, std::string error = {}) {
  return {what, entry_of(what).status, std::nullopt, std::move(event_id), std::move(error)};
}

// Of an exception in a transaction of ours. What the store says is an outage to the provider, whoever's
// statement it was: it sends the event again.
decision decide_failure(const std::exception& e, std::string event_id) {
  const bool later = retry::is_passing(class_of(e));
  const auto* ours = dynamic_cast<const error*>(&e);
  const bool unknown = ours != nullptr && (ours->retryable() || ours->outcome_unknown());
  return decide(later || unknown ? outcome::unavailable : outcome::failed, std::move(event_id),
                one_line(e.what(), error_bytes_max));
}

}  // namespace

std::string_view to_string(outcome of) { return entry_of(of).name; }

class inbox::engine {
 public:
  explicit engine(source of) : source_(std::move(of)), verifier_(source_.signature) {
    hooks::check_source(source_);
    source_.signature.keys.clear();  // the verifier has them
  }

  const source& of() const { return source_; }

  decision receive(database& db, const request& what) const {
    auto seen = read(db.env(), what);
    if (!seen.event) return told(db.env(), std::move(seen.refused));
    return told(db.env(), in_own_transaction(seen, [&](const received& event) {
                  auto tx = db.begin();
                  tx.wake_on_commit();
                  const auto row = tx.commit_with(
                      hooks::insert_statement(event, source_.ignore_stale, "RECEIVED"), "webhook.receive");
                  if (row.empty()) return outcome::duplicate;
                  return row[0][insert_columns::status].text() == "TOO_LATE" ? outcome::too_late
                                                                             : outcome::journaled;
                }));
  }

  decision apply(database& db, const request& what, const handler& with) const {
    auto seen = read(db.env(), what);
    if (!seen.event) return told(db.env(), std::move(seen.refused));
    return told(db.env(), in_own_transaction(seen, [&](const received& event) {
                  auto tx = db.begin();
                  const auto done = apply_alone(db, tx, event, with);
                  if (done == outcome::duplicate) return done;
                  tx.post(queries::sql::keep_durable);
                  tx.commit("webhook.apply");
                  return done;
                }));
  }

  decision apply(transaction& tx, const request& what, const handler& with) const {
    auto seen = read(tx.env(), what);
    if (!seen.event) return told(tx.env(), std::move(seen.refused));
    sql::undo_point before(tx);
    const auto done = apply_event(tx, *seen.event, with);
    before.leave();
    return told(tx.env(), decide(done, seen.event->id));
  }

 private:
  struct sight {
    std::optional<received> event;
    decision refused;  // if there is none
  };

  sight read(const environment& env, const request& what) const {
    if (what.body.size() > source_.body_bytes_max) return {std::nullopt, decide(outcome::too_large)};
    const auto verdict = verifier_.check(what, env.now());
    if (!verdict.accepted()) {
      auto refused = decide(outcome::refused, {}, std::string(to_string(*verdict.refused)));
      refused.refused = verdict.refused;
      return {std::nullopt, std::move(refused)};
    }
    auto found = look(what);
    if (!found.what) return {std::nullopt, decide(outcome::no_event_id, {}, std::move(found.error))};
    found.what->received_at = env.now();
    if (!found.unread_time.empty()) report_unread_time(env, *found.what, found.unread_time);
    return {std::move(found.what), {}};
  }

  // The functions that look for id and key are the user's, and bodies may be anything.
  hooks::reading look(const request& what) const {
    try {
      return hooks::read_event(source_, what);
    } catch (const std::exception& e) {
      return {std::nullopt, one_line(e.what(), error_bytes_max)};
    } catch (...) {
      return {std::nullopt, std::string(no_exception)};
    }
  }

  template <class Work>
  static decision in_own_transaction(const sight& seen, Work&& work) {
    const auto& event = *seen.event;
    try {
      return decide(work(event), event.id);
    } catch (const std::exception& e) {
      if (zoo::has(zoo::bug::webhook_answered_before_commit)) return decide(outcome::journaled, event.id);
      return decide_failure(e, event.id);
    } catch (...) {
      return decide(outcome::failed, event.id, std::string(no_exception));
    }
  }

  // Only in the zoo.
  outcome apply_and_note(transaction& tx, const received& event, const handler& with) const {
    if (!tx.execute(queries::webhook::find_event, {event.source, event.id}).empty())
      return outcome::duplicate;
    with(event, tx);
    tx.execute(hooks::insert_statement(event, source_.ignore_stale, "APPLIED"));
    return outcome::applied;
  }

  // Dedup first: of several deliveries at once one goes on, and the others wait for its end.
  outcome apply_event(transaction& tx, const received& event, const handler& with) const {
    if (zoo::has(zoo::bug::webhook_checked_then_noted)) return apply_and_note(tx, event, with);
    const auto row = with_fault_points(tx.env(), "webhook.insert", [&] {
      return tx.execute(hooks::insert_statement(event, source_.ignore_stale, "APPLIED"));
    });
    if (row.empty()) return outcome::duplicate;
    if (row[0][insert_columns::status].text() == "TOO_LATE") return outcome::too_late;
    const hooks::taken one{.row = row[0][insert_columns::id].integer(),
                           .what = event,
                           .newest_only = source_.ignore_stale,
                           .waits_since = event.received_at};
    return hooks::apply_taken(tx, one, with, {});
  }

  // In a transaction of ours the handler may begin no other one.
  outcome apply_alone(const database& db, transaction& tx, const received& event, const handler& with) const {
    const sql::handler_scope no_other_transaction(db);
    return apply_event(tx, event, with);
  }

  // Counted and, if somebody should know, logged. Never the body, and nothing of the signature.
  decision told(const environment& env, decision made) const {
    env.counters->add("settle_webhooks_total", {{"source", source_.name}, {"outcome", to_string(made.what)}});
    if (made.status == 200 && made.what != outcome::too_late) return made;
    const bool anybody = made.what == outcome::refused || made.what == outcome::too_large;
    if (anybody && !may_log(env.now())) return made;
    env.log->write(anybody ? log_level::warning : log_level::error, "webhook_not_taken",
                   {{"source", source_.name},
                    {"outcome", std::string(to_string(made.what))},
                    {"event_id", made.event_id},
                    {"error", made.error}});
    return made;
  }

  // Without its time an event is never stale, and a copy of it is not known after `keep`.
  void report_unread_time(const environment& env, const received& event, const std::string& text) const {
    env.counters->add("settle_webhook_times_unread_total", {{"source", source_.name}});
    if (!may_log(env.now())) return;
    env.log->write(log_level::warning, "webhook_time_unread",
                   {{"source", source_.name}, {"event_id", event.id}, {"time", text}});
  }

  bool may_log(timestamp now) const {
    const std::scoped_lock lock(mutex_);
    return lines_.ask(now).has_value();
  }

  source source_;
  verifier verifier_;
  mutable std::mutex mutex_;
  mutable log_limit lines_{refusal_lines_per_second};
};

inbox::inbox(source of) : engine_(std::make_unique<const engine>(std::move(of))) {}
inbox::~inbox() = default;
inbox::inbox(inbox&&) noexcept = default;

decision inbox::receive(database& db, const request& what) const { return engine_->receive(db, what); }

decision inbox::apply(database& db, const request& what, const handler& with) const {
  return engine_->apply(db, what, with);
}

decision inbox::apply(transaction& tx, const request& what, const handler& with) const {
  return engine_->apply(tx, what, with);
}

const source& inbox::of() const { return engine_->of(); }

}  // namespace settle::inline v0::webhook
