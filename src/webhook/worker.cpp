// Applies what the inbox has journaled, one event per transaction.
#include <algorithm>
#include <map>
#include <mutex>

#include "base/json.hpp"
#include "base/log_limit.hpp"
#include "base/retry.hpp"
#include "base/text.hpp"
#include "queries/webhook.hpp"
#include "settle/error.hpp"
#include "settle/failure.hpp"
#include "settle/metrics.hpp"
#include "webhook/applying.hpp"
#include "webhook/charge.hpp"

namespace settle::inline v0::webhook {
namespace {

constexpr duration upkeep_every = std::chrono::minutes(1);
constexpr std::int64_t expire_slice = 1000;
constexpr std::int64_t failure_lines_per_second = 10;
constexpr std::size_t error_bytes_max = 2000;

void check(const worker_options& options) {
  const auto refuse = [](const char* why) { throw error(errc::invalid_argument, why); };
  if (options.batch_max < 1 || options.batch_max > 10'000)
    refuse("webhook::worker_options.batch_max must be 1 to 10,000");
  if (options.attempts_max < 1) refuse("webhook::worker_options.attempts_max must be positive");
  for (const auto one : {options.retry_wait, options.retry_wait_max, options.park_wait, options.park_wait_max,
                         options.idle_poll})
    if (one <= duration::zero()) refuse("webhook::worker_options: waits and idle_poll must be positive");
  if (options.keep < duration::zero()) refuse("webhook::worker_options.keep must not be negative");
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
    handlers_[std::string(source)][std::string(type)] = std::move(with);
  }

  bool run_once(const std::stop_token& cancel) {
    bool did = false;
    for (const auto& source : due_sources()) {
      // Each source gets its share, so that a flood of one does not hold up the others.
      for (std::size_t n = 0; n < std::max<std::size_t>(options_.batch_max / handlers_.size(), 1); ++n) {
        const auto how = try_one(source, handlers_.find(source)->second, cancel);
        if (how == ended::outage) return false;
        if (how == ended::nothing_due) break;
        did = true;
      }
    }
    return upkeep() || did;
  }

  worker_counts counts() const {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }

  database& db() const { return db_; }
  wakeup& arrivals() { return *arrivals_; }
  duration idle_wait() const { return options_.idle_poll; }

 private:
  using by_type = std::map<std::string, handler, std::less<>>;
  enum class ended { nothing_due, one, outage };

  // Whoever has nothing to do must not take the write lock of a file to find that out.
  std::vector<std::string> due_sources() {
    json_array all;
    for (const auto& [source, unused] : handlers_) all.add(source);
    const auto rows = db_.read().execute(queries::webhook::due_sources, {all.text(), env().now()});
    std::vector<std::string> due;
    for (std::size_t i = 0; i < rows.size(); ++i) due.push_back(rows[i][0].text());
    return due;
  }

  static const handler* handler_of(const by_type& all, const received& what) {
    auto found = all.find(what.type);
    if (found == all.end()) found = all.find("");
    return found == all.end() ? nullptr : &found->second;
  }

  ended try_one(std::string_view source, const by_type& handlers, const std::stop_token& cancel) {
    std::optional<hooks::taken> one;
    try {
      auto tx = db_.begin(cancel);
      one = hooks::take_due(tx, source, env().now());
      if (!one) return ended::nothing_due;
      const auto* with = handler_of(handlers, one->what);
      const auto done = with != nullptr ? hooks::apply_taken(tx, *one, *with, park_rule()) : ignore(tx, *one);
      tx.commit("webhook.work");
      note(done, *one);
      return ended::one;
    } catch (const error& e) {
      if (!one || e.code() == errc::cancelled) throw;
      return charge(*one, class_of(e), e.what());
    } catch (const std::exception& e) {
      if (!one) throw;
      return charge(*one, class_of(e), e.what());
    } catch (...) {
      if (!one) throw;
      return charge(*one, failure_class::poison, "the handler threw something that is no std::exception");
    }
  }

  static outcome ignore(transaction& tx, const hooks::taken& one) {
    hooks::set_outcome(tx, one.row, "IGNORED", std::nullopt, tx.env().now());
    return outcome::ignored;
  }

  hooks::park_rule park_rule() const {
    return {options_.park_wait, options_.park_wait_max, options_.park_max_age};
  }

  // The row says whether it did commit after all: then nothing is charged.
  ended charge(const hooks::taken& one, failure_class why, const std::string& what) {
    const auto judged = hooks::judge(options_, why, one.what.attempts + 1, one.waits_since, env().now());
    const auto next = env().now() + judged.wait;
    auto tx = db_.begin();
    const auto charged = tx.execute(queries::webhook::charge_event,
                                    {one.row, one.what.attempts, judged.charged ? 1 : 0, !judged.give_up,
                                     next, storable_text(what, error_bytes_max)})
                             .affected();
    tx.commit("webhook.charge");
    if (charged > 0) note_failure(one, judged, why, what);
    return why == failure_class::outage ? ended::outage : ended::one;
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

  void note_failure(const hooks::taken& one, const hooks::judgement& judged, failure_class why,
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
    const auto latest = now + 2 * std::max(options_.retry_wait_max, options_.park_wait_max);
    auto tx = db_.begin();
    for (const auto& [source, unused] : handlers_)
      tx.post(queries::webhook::pull_waiting, {source, now, latest});
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
  std::map<std::string, by_type> handlers_;  // by source
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
