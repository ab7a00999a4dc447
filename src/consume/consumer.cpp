#include <algorithm>

#include "base/retry.hpp"
#include "base/text.hpp"
#include "consume/engine.hpp"
#include "settle/consume.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t read_ahead = 8;          // batches per fetch
constexpr std::int64_t sweep_batches = 16;     // of records per sweep, when there is no other work
constexpr std::size_t acknowledge_after = 16;  // batches per acknowledgement, under load
constexpr duration acknowledge_within = std::chrono::milliseconds(200);  // for slow handlers

void check(const consumer_options& options) {
  check_name(options.name, {"consumer name", event_limits::name_bytes_max});
  if (options.batch_max < 1 || options.batch_max > 10'000)
    throw error(errc::invalid_argument, "consumer_options.batch_max must be 1 to 10,000");
  if (options.in_flight_max < options.batch_max)
    throw error(errc::invalid_argument, "consumer_options.in_flight_max must be at least batch_max");
  if (options.retry_wait <= duration::zero() || options.retry_wait_max < options.retry_wait ||
      options.idle_poll <= duration::zero())
    throw error(errc::invalid_argument,
                "consumer_options: the waits must be positive, and retry_wait_max the larger");
  if (options.takeover_wait < std::chrono::milliseconds(1) || options.takeover_wait > std::chrono::hours(1))
    throw error(errc::invalid_argument, "consumer_options.takeover_wait must be 1 ms to 1 h");
  if (options.dedup_keep < duration::zero())
    throw error(errc::invalid_argument, "consumer_options.dedup_keep must not be negative");
}

}  // namespace

consumer::engine::engine(database& db, broker& from, const consumer_options& options)
    : db_(db),
      broker_(from),
      options_(options),
      fences_(options.name, options.takeover_wait),
      retention_(options.name, options.dedup_keep, db.env()) {
  check(options);
}

void consumer::engine::add(std::string_view topic, std::string_view type, raw_handler handler) {
  if (subscription_) throw error(errc::invalid_argument, "handlers are added before the consumer runs");
  const auto added = handlers_[std::string(topic)].emplace(type, std::move(handler));
  if (!added.second)
    throw error(errc::invalid_argument,
                "there is already a handler for " + std::string(type) + " on " + std::string(topic));
}

void consumer::engine::subscribe() {
  if (subscription_) return;
  auto topics = options_.topics;
  if (topics.empty())
    for (const auto& [topic, unused] : handlers_) topics.push_back(topic);
  if (topics.empty())
    throw error(errc::invalid_argument, "consumer " + options_.name + " has no handlers and no topics");
  subscription_ = broker_.subscribe({options_.name, topics});
}

bool consumer::engine::run_once(const std::stop_token& cancel) {
  subscribe();
  fetch();
  const auto messages = inbox_.next_batch(batch_limit(), env().now());
  if (messages.empty()) {
    acknowledge();
    return sweep(cancel);
  }
  done_.clear();
  try {
    apply(messages, cancel);
  } catch (...) {
    take_done();  // what did commit stays done, whatever stopped the rest
    throw;
  }
  take_done();
  const bool many = unacknowledged_.size() >= acknowledge_after * options_.batch_max;
  if (many || env().now() - unacknowledged_since_ >= acknowledge_within) acknowledge();
  return true;
}

// Several batches are read ahead: one look at each partition serves them all.
void consumer::engine::fetch() {
  const auto room = options_.in_flight_max - std::min(inbox_.size(), options_.in_flight_max);
  const auto ready = inbox_.next_batch(options_.batch_max, env().now()).size();
  const auto wanted = ready >= options_.batch_max ? 0 : std::min(room, read_ahead * options_.batch_max);
  auto arrived = subscription_->fetch(wanted);
  inbox_.revoke(arrived.revoked);
  inbox_.add(std::move(arrived.deliveries));
}

void consumer::engine::take_done() {
  const auto done = std::exchange(done_, {});
  if (unacknowledged_.empty()) unacknowledged_since_ = env().now();
  for (const auto* one : done) unacknowledged_.push_back(one->content.tag);
  inbox_.finished(done);
  const std::scoped_lock lock(counts_mutex_);
  counts_.held = inbox_.waiting();
}

// Committed work is acknowledged when there is nothing else to do, and under load once for several
// batches: until then a crash only means that it is delivered again and skipped.
void consumer::engine::acknowledge() {
  if (unacknowledged_.empty()) return;
  const auto tags = std::exchange(unacknowledged_, {});
  with_fault_points(env(), "consumer.acknowledge", [&] { subscription_->acknowledge(tags); });
}

// Old records go in transactions that commit anyway. A consumer without work makes one only if there is
// something to remove.
bool consumer::engine::sweep(const std::stop_token& cancel) {
  if (!retention_.due()) return false;
  {
    auto look = db_.read();
    if (!retention_.has_old(look)) return false;
  }
  retention_.set_settled(subscription_->settled());
  auto tx = db_.begin(cancel);
  const auto gone = retention_.expire(tx, sweep_batches);
  tx.commit("consumer.sweep");
  return gone > 0;
}

// Applies a batch in one transaction. If one message spoils it, everything rolls back and the rest goes
// on without it; only a message that fails alone has failed.
void consumer::engine::apply(batch messages, const std::stop_token& cancel) {
  if (messages.empty()) return;
  const auto why = attempt(messages, cancel);
  if (!why) return;
  if (messages.size() == 1)
    hold(*messages[0], why->reason);
  else
    apply_split(messages, *why, cancel);
}

void consumer::engine::apply_split(batch messages, const failure& why, const std::stop_token& cancel) {
  const auto apply_unless_behind = [&](batch part) {
    std::vector<consume::held_message*> free;
    for (auto* one : part) {
      const bool behind = std::ranges::any_of(messages, [&](const auto* earlier) {
        return earlier->failures > 0 && consume::same_key(earlier->content.content, one->content.content);
      });
      if (!behind) free.push_back(one);
    }
    apply(free, cancel);
  };
  if (!why.at) {  // COMMIT did not say which message it minded
    for (std::size_t i = 0; i < messages.size(); ++i) apply_unless_behind(messages.subspan(i, 1));
    return;
  }
  apply(messages.first(*why.at), cancel);
  apply_unless_behind(messages.subspan(*why.at, 1));
  apply_unless_behind(messages.subspan(*why.at + 1));
}

void consumer::engine::hold(consume::held_message& one, const std::string& why) {
  const auto wait = quadratic_wait(one.failures + 1, options_.retry_wait, options_.retry_wait_max);
  inbox_.failed(one, env().now() + wait);
  {
    const std::scoped_lock lock(counts_mutex_);
    ++counts_.failures;
  }
  const auto& m = one.content.content;
  env().counters->add("settle_consumer_failures_total", {{"consumer", options_.name}});
  env().log->write(log_level::warning, "handler_failed",
                   {{"consumer", options_.name},
                    {"message_id", m.id},
                    {"type", m.type},
                    {"key", m.key},
                    {"failures", std::to_string(one.failures)},
                    {"retry_in_ms", std::to_string(wait / std::chrono::milliseconds(1))},
                    {"error", why}});
}

// Slow handlers get small batches, so that a transaction lasts about batch_time.
std::size_t consumer::engine::batch_limit() const {
  if (handler_us_ <= 0) return options_.batch_max;
  const auto fits = static_cast<double>(options_.batch_time.count()) / handler_us_;
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::min(fits, 1e6)), 1, options_.batch_max);
}

wakeup& consumer::engine::arrivals() {
  subscribe();
  return subscription_->arrivals();
}

duration consumer::engine::idle_wait() const {
  const auto now = env().now();
  const auto wait = inbox_.next_retry(now + options_.idle_poll) - now;
  return std::clamp(wait, duration(std::chrono::milliseconds(1)), options_.idle_poll);
}

consumer_counts consumer::engine::counts() const {
  const std::scoped_lock lock(counts_mutex_);
  return counts_;
}

void consumer::engine::leave() noexcept {
  try {
    if (subscription_) acknowledge();
  } catch (const std::exception& e) {
    env().log->write(log_level::warning, "acknowledge_failed",
                     {{"consumer", options_.name}, {"error", e.what()}});
  }
  if (subscription_) subscription_->leave();
  inbox_ = {};
}

consumer::consumer(database& db, broker& from, const consumer_options& options)
    : engine_(std::make_unique<engine>(db, from, options)) {}
consumer::~consumer() = default;

consumer& consumer::on(std::string_view topic, std::string_view type, raw_handler handler) {
  add(topic, type, std::move(handler));
  return *this;
}

void consumer::add(std::string_view topic, std::string_view type, raw_handler handler) {
  engine_->add(topic, type, std::move(handler));
}

bool consumer::run_once(std::stop_token cancel) { return engine_->run_once(cancel); }
consumer_counts consumer::counts() const { return engine_->counts(); }
std::string_view consumer::name() const { return engine_->name(); }
const environment& consumer::env() const { return engine_->env(); }
wakeup& consumer::arrivals() { return engine_->arrivals(); }
duration consumer::idle_wait() const { return engine_->idle_wait(); }
void consumer::leave() noexcept { engine_->leave(); }

}  // namespace settle::inline v0
