// Applies what the inbox has journaled, one event per transaction.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/if_possible.hpp"
#include "base/json.hpp"
#include "base/log_limit.hpp"
#include "base/text.hpp"
#include "queries/sql.hpp"
#include "queries/webhook.hpp"
#include "retry/crashes.hpp"
#include "settle/error.hpp"
#include "settle/failure.hpp"
#include "settle/metrics.hpp"
#include "sql/handler_scope.hpp"
#include "webhook/applying.hpp"
#include "webhook/retry_policy.hpp"
#include "webhook/source_state.hpp"

namespace settle::inline v0::webhook {
namespace {

constexpr duration upkeep_every = std::chrono::minutes(1);
constexpr std::int64_t expire_slice = 1000;
constexpr std::int64_t failure_lines_per_second = 10;
constexpr std::size_t error_bytes_max = 2000;
constexpr std::size_t own_marks_max = 10'000;

std::string milliseconds(duration of) { return std::to_string(of / std::chrono::milliseconds(1)); }

void check(const worker_options& options) {
  const auto refuse = [](const char* why) { throw error(errc::invalid_argument, why); };
  if (options.batch_max < 1 || options.batch_max > 10'000)
    refuse("webhook::worker_options.batch_max must be 1 to 10,000");
  if (options.attempts_max < 1) refuse("webhook::worker_options.attempts_max must be positive");
  for (const auto one : {options.retry_wait, options.retry_wait_max, options.park_wait, options.park_wait_max,
                         options.outage_wait, options.outage_wait_max, options.idle_poll})
    if (one <= duration::zero()) refuse("webhook::worker_options: waits and idle_poll must be positive");
  if (options.keep != duration::zero() && options.keep < hooks::keep_min)
    refuse(
        "webhook::worker_options.keep must be zero (this worker removes nothing) or at least an hour, or new "
        "events would be taken for copies");
}

}  // namespace

class worker::engine {
 public:
  engine(database& db, const worker_options& options)
      : db_(db), options_(options), arrivals_(db.watch()), next_upkeep_(db.env().now() + upkeep_every) {
    check(options);
  }

  void add(std::string_view source, std::string_view type, handler with) {
    if (source.empty()) throw error(errc::invalid_name, "a handler of webhooks needs the name of a source");
    if (!with) throw error(errc::invalid_argument, "the handler of webhooks is empty");
    const retry::backoff outage_pauses{options_.outage_wait, options_.outage_wait_max};
    sources_.try_emplace(std::string(source), outage_pauses).first->second.add(type, std::move(with));
  }

  bool run_once(const std::stop_token& cancel) {
    bool did = false;
    for (const auto& name : due_sources()) did = work_on(name, cancel) || did;
    return upkeep() || did;
  }

  worker_counts counts() const {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }

  database& db() const { return db_; }
  wakeup& arrivals() { return *arrivals_; }
  // An outage is tried in its time, also by one that otherwise looks seldom.
  duration idle_wait() const {
    auto wait = options_.idle_poll;
    const auto now = env().now();
    for (const auto& [unused, source] : sources_)
      if (!source.away().may_try(now)) wait = std::min(wait, source.away().until() - now);
    return std::max<duration>(wait, std::chrono::milliseconds(1));
  }

 private:
  enum class ended { nothing_due, one, outage };

  // Whoever has nothing to do must not take the write lock of a file to find that out.
  std::vector<std::string> due_sources() {
    json_array all;
    bool any = false;
    for (const auto& [name, source] : sources_) {
      if (!source.away().may_try(env().now())) continue;
      all.add(name);
      any = true;
    }
    std::vector<std::string> due;
    if (!any) return due;
    const auto rows = db_.read().execute(queries::webhook::due_sources, {all.text(), env().now()});
    for (std::size_t i = 0; i < rows.size(); ++i)
      due.push_back(rows[i][queries::webhook::due_sources_columns::name].text());
    return due;
  }

  // Each source gets its share, so that a flood of one does not hold up the others; an outage is its own.
  bool work_on(const std::string& name, const std::stop_token& cancel) {
    auto& source = sources_.find(name)->second;
    bool did = false;
    for (std::size_t n = 0; n < std::max<std::size_t>(options_.batch_max / sources_.size(), 1); ++n) {
      const auto how = try_one(name, source, cancel);
      if (how != ended::one) break;
      did = true;
    }
    return did;
  }

  ended try_one(std::string_view name, hooks::source_state& source, const std::stop_token& cancel) {
    std::optional<hooks::taken> one;
    {
      auto tx = db_.begin(cancel);
      one = hooks::take_due(tx, name, env().now());
      if (!one) return ended::nothing_due;
      const bool marked = own_marks_.contains(one->row);
      if (marked || !source.is_doubted(*one)) return attempt(std::move(tx), *one, source);
    }
    if (retry::has_crashed_enough(one->starts)) return give_up_crashed(*one);
    return try_marked(*one, source, cancel);
  }

  ended try_marked(const hooks::taken& doubted, hooks::source_state& source, const std::stop_token& cancel) {
    tell_suspected(doubted);
    source.marked();
    if (own_marks_.size() >= own_marks_max) own_marks_.clear();
    own_marks_.insert(doubted.row);
    const auto wait = hooks::mark_pauses.after(doubted.starts + 1);
    std::optional<hooks::taken> one;
    if (hooks::mark_start(db_, doubted, env().now() + wait)) {
      auto tx = db_.begin(cancel);
      one = hooks::take_marked(tx, doubted, env().now());
      if (one) return attempt(std::move(tx), *one, source);
    }
    own_marks_.erase(doubted.row);  // somebody else was faster
    return ended::one;
  }

  ended attempt(owned_transaction tx, const hooks::taken& one, hooks::source_state& source) {
    try {
      const auto done = run(std::move(tx), one, source);
      own_marks_.erase(one.row);
      if (done == outcome::applied) tell_resumed(one, source.got_through(one.row, env().now()));
      note(done, one);
      return ended::one;
    } catch (const error& e) {
      if (e.code() != errc::cancelled) return failed(one, source, class_of(e), e.what());
      unmark(one);
      throw;
    } catch (const std::exception& e) {
      return failed(one, source, class_of(e), e.what());
    } catch (...) {
      return failed(one, source, failure_class::poison,
                    "the handler threw something that is no std::exception");
    }
  }

  // Over when it returns or throws: what follows needs the connection.
  outcome run(owned_transaction in, const hooks::taken& one, const hooks::source_state& source) {
    auto tx = std::move(in);
    const auto* with = source.handler_of(one.what);
    const auto done = with != nullptr ? run_handler(tx, one, *with) : ignore(tx, one);
    tx.post(queries::sql::keep_durable);
    tx.commit("webhook.work");
    return done;
  }

  outcome run_handler(transaction& tx, const hooks::taken& one, const handler& with) {
    const sql::handler_scope no_other_transaction(db_);
    return hooks::apply_taken(tx, one, with, park_rule());
  }

  // A stop is no crash.
  void unmark(const hooks::taken& one) noexcept {
    if (own_marks_.erase(one.row) == 0) return;
    try {
      hooks::unmark_start(db_, one);
    } catch (const std::exception& e) {
      if_possible([&] {
        env().log->write(log_level::warning, "webhook_mark_stays",
                         {{"source", one.what.source}, {"event_id", one.what.id}, {"error", e.what()}});
      });
    }
  }

  static outcome ignore(transaction& tx, const hooks::taken& one) {
    hooks::set_outcome(tx, one.row, "IGNORED", std::nullopt, tx.env().now());
    return outcome::ignored;
  }

  hooks::park_rule park_rule() const {
    return {options_.park_wait, options_.park_wait_max, options_.park_max_age};
  }

  ended failed(const hooks::taken& one, hooks::source_state& source, failure_class why,
               const std::string& what) {
    if (source.is_everybodys(why, one.row)) return pause(one, source, what);
    const auto judged = retry::judge(hooks::policy_of(options_), why, hooks::failures_of(one).after(why),
                                     env().now() - one.waits_since);
    if (charge(one, {1, retry::is_passing(why) ? 1 : 0}, judged, what)) note_failure(one, judged, why, what);
    return ended::one;
  }

  // Nobody's fault: the event is not charged, and the source waits.
  ended pause(const hooks::taken& one, hooks::source_state& source, const std::string& what) {
    const bool begins = !source.away().lasts();
    source.meets_outage(one.row, env().now());
    const auto wait = source.away().until() - env().now();
    if (begins) tell_paused(one, wait, what);
    charge(one, {0, 0}, {std::nullopt, wait}, what);
    return ended::outage;
  }

  void tell_paused(const hooks::taken& one, duration wait, const std::string& what) {
    count(&worker_counts::pauses);
    env().counters->add("settle_webhook_pauses_total", {{"source", one.what.source}});
    env().log->write(log_level::error, "webhook_source_paused",
                     {{"source", one.what.source},
                      {"event_id", one.what.id},
                      {"retry_in_ms", milliseconds(wait)},
                      {"error", one_line(what, error_bytes_max)}});
  }

  void tell_resumed(const hooks::taken& one, std::optional<duration> after) {
    if (!after) return;
    env().log->write(log_level::warning, "webhook_source_resumed",
                     {{"source", one.what.source}, {"paused_ms", milliseconds(*after)}});
  }

  ended give_up_crashed(const hooks::taken& one) {
    const auto how = retry::charge_for_crashes(one.starts, env().now());
    const retry::judgement judged{dead_letter_reason::crashed_process};
    if (charge(one, {0, 0}, judged, how.error)) note_failure(one, judged, how.why, how.error);
    return ended::one;
  }

  struct charged {
    int attempts;
    int passing;
  };
  // The row says whether it did commit after all: then nothing is charged.
  bool charge(const hooks::taken& one, charged by, const retry::judgement& judged, const std::string& what) {
    auto tx = db_.begin();
    const auto written =
        tx.execute(queries::webhook::charge_event,
                   {one.row, one.what.attempts, by.attempts, !judged.give_up, env().now() + judged.wait,
                    storable_text(what, error_bytes_max), by.passing})
            .affected();
    tx.commit("webhook.charge");
    own_marks_.erase(one.row);
    return written > 0;
  }

  void note(outcome done, const hooks::taken& one) {
    static constexpr std::pair<outcome, std::int64_t worker_counts::*> counters[] = {
        {outcome::applied, &worker_counts::applied},
        {outcome::parked, &worker_counts::parked},
        {outcome::ignored, &worker_counts::ignored},
        {outcome::stale, &worker_counts::stale},
        {outcome::failed, &worker_counts::given_up}};
    for (const auto& [of, member] : counters)
      if (of == done) count(member);
    env().counters->add("settle_webhook_events_total",
                        {{"source", one.what.source}, {"outcome", to_string(done)}});
    if (done == outcome::failed) tell_given_up(one, "what has to come before it has not come");
  }

  void note_failure(const hooks::taken& one, const retry::judgement& judged, failure_class why,
                    const std::string& what) {
    count(&worker_counts::failures);
    env().counters->add("settle_webhook_failures_total", {{"source", one.what.source}});
    if (judged.give_up) {
      count(&worker_counts::given_up);
      env().counters->add("settle_webhook_events_total",
                          {{"source", one.what.source}, {"outcome", "failed"}});
      tell_given_up(one, what);
    } else if (lines_.ask(env().now())) {
      env().log->write(log_level::warning, "webhook_failed",
                       {{"source", one.what.source},
                        {"event_id", one.what.id},
                        {"type", one.what.type},
                        {"class", std::string(to_string(why))},
                        {"error", one_line(what, error_bytes_max)}});
    }
  }

  // Whoever ran it last has not come back.
  void tell_suspected(const hooks::taken& one) {
    if (one.starts == 0 || !lines_.ask(env().now())) return;
    env().log->write(log_level::warning, "webhook_suspected",
                     {{"source", one.what.source},
                      {"event_id", one.what.id},
                      {"type", one.what.type},
                      {"starts", std::to_string(one.starts)}});
  }

  void tell_given_up(const hooks::taken& one, const std::string& what) {
    env().log->write(log_level::error, "webhook_given_up",
                     {{"source", one.what.source},
                      {"event_id", one.what.id},
                      {"type", one.what.type},
                      {"key", one.what.key},
                      {"error", one_line(what, error_bytes_max)}});
  }

  bool upkeep() {
    const auto now = env().now();
    if (now < next_upkeep_ && next_upkeep_ - now <= upkeep_every) return false;
    const auto latest = now + 2 * std::max({options_.retry_wait_max, options_.park_wait_max,
                                            options_.outage_wait_max, hooks::mark_pauses.longest});
    auto tx = db_.begin();
    for (const auto& [name, unused] : sources_) tx.post(queries::webhook::pull_waiting, {name, now, latest});
    tx.commit("webhook.pull");
    const bool removes = options_.keep > duration::zero();
    const auto gone = removes ? expire(db_, options_.keep, expire_slice) : 0;
    count(&worker_counts::expired, gone);
    if (gone == expire_slice) return true;  // and again at once
    next_upkeep_ = now + upkeep_every;
    return false;
  }

  void count(std::int64_t worker_counts::* what, std::int64_t amount = 1) {
    const std::scoped_lock lock(mutex_);
    counts_.*what += amount;
  }

  const environment& env() const { return db_.env(); }

  database& db_;
  worker_options options_;
  std::unique_ptr<wakeup> arrivals_;
  std::map<std::string, hooks::source_state> sources_;  // by name
  // Rows that this process has marked and not written about yet: it lives, so they are no crash.
  std::set<std::int64_t> own_marks_;
  timestamp next_upkeep_;
  log_limit lines_{failure_lines_per_second};
  mutable std::mutex mutex_;
  worker_counts counts_;
};

worker::worker(database& db, const worker_options& options)
    : engine_(std::make_unique<engine>(db, options)) {}
worker::~worker() = default;

worker& worker::on(std::string_view source, std::string_view type, handler with) {
  engine_->add(source, type, std::move(with));
  return *this;
}

bool worker::run_once(std::stop_token cancel) { return engine_->run_once(cancel); }
worker_counts worker::counts() const { return engine_->counts(); }
const environment& worker::env() const { return engine_->db().env(); }
wakeup& worker::arrivals() { return engine_->arrivals(); }
duration worker::idle_wait() const { return engine_->idle_wait(); }

}  // namespace settle::inline v0::webhook
