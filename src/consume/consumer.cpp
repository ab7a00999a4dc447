#include <algorithm>
#include <thread>

#include "base/pause.hpp"
#include "base/text.hpp"
#include "consume/engine.hpp"
#include "settle/consume.hpp"
#include "settle/driver/broker.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::int64_t sweep_batches = 16;  // of records per sweep, when there is no other work
constexpr duration abandon_within = std::chrono::seconds(1);  // then a stop costs a little care

// Nothing that arrives ends this wait.
wakeup& only_time() {
  class : public wakeup {
   public:
    void wait(duration at_most, std::stop_token stop) override { settle::pause(at_most, stop); }
  } static nothing;
  return nothing;
}

void check_waits(const consumer_options& options) {
  if (options.retry_wait <= duration::zero() || options.retry_wait_max < options.retry_wait ||
      options.outage_wait <= duration::zero() || options.outage_wait_max < options.outage_wait ||
      options.idle_poll <= duration::zero() || options.handler_timeout <= duration::zero() ||
      options.broker_timeout <= duration::zero())
    throw error(errc::invalid_argument,
                "consumer_options: the waits must be positive, and each …_max the larger");
  if (options.retry_jitter < 0 || options.retry_jitter > 1)
    throw error(errc::invalid_argument, "consumer_options.retry_jitter must be 0 to 1");
  if (options.dedup_keep < duration::zero() || options.transient_max_age < duration::zero())
    throw error(errc::invalid_argument,
                "consumer_options.dedup_keep and transient_max_age must not be negative");
}

void check(const consumer_options& options) {
  check_name(options.name, {"consumer name", event_limits::name_bytes_max});
  check_name(options.version, {"consumer version", event_limits::name_bytes_max, true});
  if (options.batch_max < 1 || options.batch_max > 10'000)
    throw error(errc::invalid_argument, "consumer_options.batch_max must be 1 to 10,000");
  if (options.in_flight_max < options.batch_max)
    throw error(errc::invalid_argument, "consumer_options.in_flight_max must be at least batch_max");
  if (options.attempts_max < 1 || options.attempts_max > 1'000)
    throw error(errc::invalid_argument, "consumer_options.attempts_max must be 1 to 1,000");
  if (options.takeover_wait < std::chrono::milliseconds(1) || options.takeover_wait > std::chrono::hours(1))
    throw error(errc::invalid_argument, "consumer_options.takeover_wait must be 1 ms to 1 h");
  check_waits(options);
}

void check_declared(const consumer_options& options, const std::vector<std::string>& handled) {
  const auto refuse = [&](const std::string& what) {
    throw error(errc::invalid_argument, "consumer " + options.name + " " + what);
  };
  for (const auto& topic : handled)
    if (std::ranges::find(options.topics, topic) == options.topics.end())
      refuse("has a handler for the topic " + topic + ", which its options.topics do not name");
  for (const auto& topic : options.topics)
    if (std::ranges::find(handled, topic) == handled.end())
      refuse("names the topic " + topic + " in its options.topics and has no handler for it");
}

}  // namespace

consumer::engine::engine(database& db, broker& from, const consumer_options& options)
    : db_(db),
      options_(options),
      report_(db.env(), options.name),
      moments_(db, options.name),
      intake_(from, options_, db.env()),
      fences_(options.name, options.takeover_wait),
      retention_(options.name, std::max(options.dedup_keep, from.traits().redelivers_for), db),
      parking_(options.name, db.speaks()),
      schedule_({.retry_wait = options.retry_wait,
                 .retry_wait_max = options.retry_wait_max,
                 .idle_poll = options.idle_poll,
                 .announced_for = consume::announced_for,
                 .together_max = options.batch_max}),
      pauses_(options_, db.env(), report_),
      failures_(options_, db.env(), report_, pauses_),
      charges_(options_, db.env(), fences_, pauses_, parking_, schedule_),
      claims_({.db = db,
               .options = options_,
               .handlers = handlers_,
               .fences = fences_,
               .careful = caution_,
               .parking = parking_,
               .retention = retention_,
               .inbox = inbox_,
               .moments = moments_}),
      runner_(db, options_, handlers_, failures_, report_),
      announcements_(handlers_, runner_, parking_, schedule_, report_),
      retries_({.db = db,
                .options = options_,
                .handlers = handlers_,
                .parking = parking_,
                .schedule = schedule_,
                .announcements = announcements_,
                .charges = charges_,
                .report = report_,
                .apply = [this](batch messages, const std::stop_token& cancel) {
                  run parked{cancel};
                  apply(messages, parked);
                  return std::move(parked.done);
                }}) {
  check(options);
}

void consumer::engine::add(std::string_view topic, std::string_view type, consume::handler what) {
  if (intake_.is_open()) throw error(errc::invalid_argument, "handlers are added before the consumer runs");
  handlers_.add(topic, type, std::move(what));
}

void consumer::engine::subscribe() {
  if (intake_.is_open()) return;
  const auto handled = handlers_.topics();
  if (handled.empty()) throw error(errc::invalid_argument, "consumer " + options_.name + " has no handlers");
  if (!options_.topics.empty()) check_declared(options_, handled);
  intake_.open(handled);
}

// Whoever calls it waits after an error, and tries again: that is the pause, and the probe.
bool consumer::engine::run_once(const std::stop_token& cancel) {
  try {
    const bool more = run_round(cancel);
    pauses_.round_succeeded();
    return more;
  } catch (const error& e) {
    pauses_.round_failed(e);
    throw;
  }
}

// The broker is asked whose it is. If it is still ours, it comes again, with all that was not acknowledged.
void consumer::engine::drop_partition(const consume::partition_lost& why) {
  report_.has_another_owner(fences_.name_of(why.partition));
  inbox_.revoke({{why.partition}});
  fences_.forget(why.partition);
  caution_.end(why.partition);
  intake_.from().doubt(why.partition);
}

// Old records go in transactions that commit anyway. A consumer without work makes one only if there is
// something to remove.
bool consumer::engine::sweep(const std::stop_token& cancel) {
  if (!retention_.due()) return false;
  {
    auto look = db_.read();
    if (!retention_.has_old(look)) return false;
  }
  retention_.set_settled(intake_.from().settled());
  auto tx = db_.begin(cancel);
  const auto gone = retention_.may_expire(tx) ? retention_.expire(tx, sweep_batches) : 0;
  tx.commit("consumer.sweep");
  return gone > 0;
}

// Who comes next may not listen to all of it any more, and then nobody else will say so.
void consumer::engine::note_settled() noexcept {
  try {
    retention_.set_settled(intake_.from().settled());
    auto tx = db_.begin();
    retention_.note_settled(tx);
    tx.commit("consumer.note_settled");
  } catch (const std::exception& e) {
    report_.end_of_work_not_noted(e.what());
  }
}

// What arrives before an outage may be over changes nothing.
wakeup& consumer::engine::arrivals() {
  subscribe();
  if (!pauses_.may_try()) return only_time();
  return intake_.from().arrivals();
}

duration consumer::engine::idle_wait() const {
  const auto now = env().now();
  auto until = pauses_.may_try() ? schedule_.next_look() : pauses_.until();
  if (inbox_.put_off_until() > now) until = std::min(until, inbox_.put_off_until());
  return std::clamp<duration>(until - now, std::chrono::milliseconds(1), options_.idle_poll);
}

// Nothing is under way here any more, so whoever comes next need not take it for a crash.
void consumer::engine::end_work(const std::stop_token& cancel) noexcept {
  announcements_.drop();
  try {
    if (fences_.none_minted() && announcements_.all_ended()) return;
    auto tx = db_.begin(cancel);  // not posted: a commit waits for its answer, whoever wants to be gone
    fences_.release_all(tx);
    announcements_.end_all(tx);
    tx.commit("consumer.end_work");
  } catch (const std::exception& e) {
    report_.end_of_work_not_noted(e.what());
  }
  fences_.forget_epochs();
  announcements_.forget_unended();
  claims_.forget_holders();
}

void consumer::engine::abandon() noexcept try {
  std::stop_source enough;
  const std::jthread timer([&](const std::stop_token& done) {
    settle::pause(abandon_within, done);
    enough.request_stop();
  });
  end_work(enough.get_token());
} catch (const std::exception&) {  // no thread to be had
}

void consumer::engine::leave() noexcept {
  end_work({});
  try {
    if (intake_.is_open()) intake_.acknowledge();
  } catch (const std::exception& e) {
    report_.acknowledge_failed(e.what());
  }
  if (intake_.is_open() && !pauses_.is_cut_off()) note_settled();
  if (intake_.is_open()) intake_.from().leave();
  inbox_.clear();
}

consumer::consumer(database& db, broker& from, const consumer_options& options)
    : engine_(std::make_unique<engine>(db, from, options)) {}
consumer::~consumer() = default;

consumer& consumer::on(std::string_view topic, std::string_view type, raw_handler handler,
                       const handler_options& options) {
  engine_->add(topic, type, {std::move(handler), {}, options.effects == handler_effects::outside});
  return *this;
}

consumer& consumer::on_batch(std::string_view topic, std::string_view type, raw_batch_handler handler) {
  engine_->add(topic, type, {{}, std::move(handler)});
  return *this;
}

bool consumer::run_once(std::stop_token cancel) { return engine_->run_once(cancel); }
std::vector<subscribed> consumer::subscriptions() const { return engine_->subscriptions(); }
consumer_counts consumer::counts() const { return engine_->counts(); }
bool consumer::has_parked() const { return engine_->has_parked(); }
std::string_view consumer::name() const { return engine_->name(); }
const environment& consumer::env() const { return engine_->env(); }
wakeup& consumer::arrivals() { return engine_->arrivals(); }
duration consumer::idle_wait() const { return engine_->idle_wait(); }
void consumer::leave() noexcept { engine_->leave(); }
void consumer::abandon() noexcept { engine_->abandon(); }

}  // namespace settle::inline v0
