#include "simulation/sim_actors.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "settle/dead_letter.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"

namespace settle::sim {
namespace {

constexpr duration busy_timeout = std::chrono::milliseconds(20);

}  // namespace

std::string file_of(const std::string& group) { return group + ".db"; }

std::string actor::step(const std::optional<strike>& during) {
  if (!process_) process_ = std::make_unique<process>(in_.computer, fmt::format("{}#{}", name_, ++starts_));
  if (during)
    process_->at_point(during->points, [this, power = during->power] {
      power ? in_.computer.lose_power() : process_->kill();
    });
  did_something_ = true;
  std::string outcome;
  try {
    if (!opened_) open();
    opened_ = true;
    outcome = work();
  } catch (const error& e) {
    outcome = fmt::format("{}{}: {}", to_string(e.code()), e.outcome_unknown() ? " (unknown)" : "", e.what());
  }
  process_->disarm();
  if (!opened_) close();
  if (process_->dead()) outcome += " †";
  return outcome;
}

void actor::kill() {
  if (process_) process_->kill();
  bury();
}

void actor::stop() {
  if (!process_) return;
  if (opened_) leave();
  close();
  opened_ = false;
  process_.reset();
}

void actor::bury() {
  if (!process_ || !process_->dead()) return;
  close();
  opened_ = false;
  process_.reset();
}

std::unique_ptr<database> actor::open_database(const std::string& path) const {
  return sqlite::open(
      path,
      {.env = in_.env, .busy_timeout = busy_timeout, .checkpoint_pages = in_.checkpoint_pages, .vfs = vfs()});
}

std::unique_ptr<broker> actor::open_broker() const {
  return sqlite::open_broker(broker_file, {.env = in_.env,
                                           .busy_timeout = busy_timeout,
                                           .partitions = 4,
                                           .lease_ttl = in_.lease_ttl,
                                           .vfs = vfs()});
}

// The way to the broker, with the troubles of a network: repeated, or answered into the void.
class relay_actor::shaky_publisher final : public publisher {
 public:
  shaky_publisher(publisher& real, const surroundings& in) : real_(real), in_(in) {}

  std::vector<publish_result> publish(std::span<const message> batch, const call_limits& limits) override {
    if (in_.in_a_hundred(in_.now.publish_repeats)) real_.publish(batch, limits);
    auto results = real_.publish(batch, limits);
    if (in_.in_a_hundred(in_.now.publish_answer_lost))
      results.assign(batch.size(), {publish_status::destination_failed, "no answer"});
    return results;
  }

 private:
  publisher& real_;
  const surroundings& in_;
};

relay_actor::relay_actor(surroundings& in, const std::string& name, std::string file)
    : actor(in, name), file_(std::move(file)) {}
relay_actor::~relay_actor() = default;

void relay_actor::open() {
  db_ = open_database(file_);
  broker_ = open_broker();
  destination_ = std::make_unique<shaky_publisher>(broker_->publishing(), in_);
  relay_ = std::make_unique<relay>(
      *db_, *destination_,
      relay_options{
          .batch_max = 1 + in_.choices.below(12), .batch_bytes_max = 8000, .lease_ttl = in_.lease_ttl});
}

std::string relay_actor::work() {
  did_something_ = relay_->run_once();
  return did_something_ ? "relayed" : "idle";
}

void relay_actor::leave() noexcept { relay_->leave(); }

void relay_actor::close() noexcept {
  relay_.reset();
  destination_.reset();
  broker_.reset();
  db_.reset();
}

consumer_actor::consumer_actor(surroundings& in, int number, std::string group)
    : actor(in, fmt::format("{}-{}", group, number)), group_(std::move(group)) {}

void consumer_actor::open() {
  db_ = open_database(file_of(group_));
  broker_ = open_broker();
  consumer_ = std::make_unique<consumer>(
      *db_, *broker_,
      consumer_options{
          .name = group_,
          .batch_max = 1 + in_.choices.below(in_.consumer_batch_max),
          .retry_wait_max = std::chrono::seconds(5),  // shorter than what counts as rest
          .on_exhausted = in_.handlers.block_keys() ? on_exhausted::block_key : on_exhausted::continue_key,
          .dedup_keep = in_.dedup_keep});
  consumer_->on("orders", "order.placed", [this](const message& m, transaction& tx) { apply(m, tx); });
}

void consumer_actor::apply(const message& m, transaction& tx) {
  const auto order_id = m.payload.substr(0, m.payload.find('|'));
  if (in_.in_a_hundred(in_.now.handler_fails)) throw std::runtime_error("no room for " + order_id);
  tx.execute("insert into shipments (order_id) values ($1)", {order_id});
  note_applied(tx, group_, {.topic = m.topic, .key = m.key, .subject = order_id});
  in_.handlers.run(group_, order_id, in_.env.now());
  if (in_.in_a_hundred(in_.now.handler_fails)) throw std::runtime_error("no room left for " + order_id);
}

std::string consumer_actor::work() {
  const auto before = consumer_->counts();
  did_something_ = consumer_->run_once();
  const auto after = consumer_->counts();
  if (!did_something_) return "idle";
  return fmt::format("applied {}, duplicates {}, beyond {}, failures {}, parked {}, replays {}",
                     after.applied - before.applied, after.duplicates - before.duplicates,
                     after.beyond_horizon - before.beyond_horizon, after.failures - before.failures,
                     after.parked - before.parked, after.replays - before.replays);
}

void consumer_actor::leave() noexcept { consumer_->leave(); }

void consumer_actor::close() noexcept {
  consumer_.reset();
  broker_.reset();
  db_.reset();
}

// Not those that may have been applied long ago: here they always were.
std::string operator_actor::work() {
  std::int64_t sent = 0;
  did_something_ = false;
  for (const auto why : {dead_letter_reason::permanent, dead_letter_reason::exhausted,
                         dead_letter_reason::too_old, dead_letter_reason::crashed_process}) {
    const auto outcome =
        replay(*db_, {.reason = why}, {.batches = {1000}, .failures_max = 1, .wait_max = duration::zero()});
    sent += outcome.counts.sent;
    did_something_ = sent > 0;
  }
  return fmt::format("asked for {}", sent);
}

void housekeeper::open() {
  orders_ = open_database(orders_file);
  broker_ = open_database(broker_file);
}

std::string housekeeper::work() {
  auto tx = orders_->begin();
  const auto removed = tx.execute(
      "delete from settle_outbox where seq <= "
      "(select coalesce(min(position), 0) from settle_shares where scope = 'outbox')");
  tx.commit("housekeeper.commit");
  auto touch = broker_->begin();
  touch.execute("update broker_identity set one = one");  // any commit takes the checkpoint that is due
  touch.commit("housekeeper.commit");
  return fmt::format("removed {}", removed.affected());
}

void housekeeper::close() noexcept {
  orders_.reset();
  broker_.reset();
}

}  // namespace settle::sim
