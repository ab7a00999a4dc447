#include "saga/events.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "saga/commands.hpp"
#include "settle/metrics.hpp"

namespace settle::sagas {
namespace {

constexpr duration look_every = std::chrono::milliseconds(50);
constexpr duration ask_again_after = std::chrono::seconds(30);  // a broker may have lost the question
constexpr duration answer_within = std::chrono::seconds(10);

}  // namespace

event_intake::event_intake(database& db, broker& from, const std::string& host)
    : host_(host), mail_(host), broker_(from), consumer_(db, from, {.name = host + ".sagas"}) {}

void event_intake::on(std::string_view topic, std::string_view type, key_reader key_of) {
  listens_ = true;
  consumer_.on_batch(
      topic, type, [this, key_of = std::move(key_of)](std::span<const message* const> all, transaction& tx) {
        std::vector<arrived_event> events;
        events.reserve(all.size());
        for (const auto* m : all) events.push_back({m->type, key_of(m->payload), m->id, m->payload});
        mail_.deliver(tx, events);
      });
}

void event_intake::on_reply(const std::string& topic, const std::string& type) {
  listens_ = true;
  consumer_.on_batch(topic, type, [this](std::span<const message* const> all, transaction& tx) {
    std::vector<arrived_event> events;
    for (const auto* m : all)
      if (const auto cause = m->extensions.find("causationid"); cause != m->extensions.end())
        events.push_back({std::string(reply_mail), cause->second, m->id, reply_text(m->type, m->payload)});
    const auto unexpected = std::ssize(all) - mail_.deliver_wanted(tx, events);
    if (unexpected > 0)
      tx.env().counters->add("settle_saga_replies_unexpected_total", {{"host", host_}}, unexpected);
  });
}

void event_intake::catch_up_to(timestamp wanted) {
  const auto us = wanted.time_since_epoch().count();
  auto known = wanted_us_.load();
  while (known < us && !wanted_us_.compare_exchange_weak(known, us)) {
  }
}

bool event_intake::run_once(std::stop_token cancel) {
  const auto began = env().now();
  const bool more = consumer_.run_once(cancel);
  if (is_behind()) look_at_backlog(!more, began, cancel);
  return more;
}

// The broker is asked what the whole group has still to do: that this process finds nothing more says nothing
// about what others have in hand, nor about what is on its way here.
void event_intake::look_at_backlog(bool found_nothing, timestamp began, const std::stop_token& cancel) {
  const auto now = env().now();
  if (now < next_look_ && next_look_ - now <= look_every) return;
  next_look_ = now + look_every;
  const call_limits limits{answer_within, cancel};
  try {
    if (!backlog_ || now - asked_at_ > ask_again_after || now < asked_at_) {
      std::set<std::string> topics;
      for (const auto& one : consumer_.subscriptions()) topics.insert(one.topic);
      asked_at_ = now;
      backlog_ = broker_.backlog_of(std::string(consumer_.name()), {topics.begin(), topics.end()}, limits);
    }
    if (!backlog_) {  // it cannot tell
      if (found_nothing) caught_up_at_us_ = began.time_since_epoch().count();
    } else if (backlog_->is_done(limits) && !consumer_.has_parked()) {
      caught_up_at_us_ = asked_at_.time_since_epoch().count();
      backlog_.reset();
    }
  } catch (...) {
    backlog_.reset();
    throw;
  }
}

duration event_intake::idle_wait() const {
  return is_behind() ? std::min(consumer_.idle_wait(), look_every) : consumer_.idle_wait();
}

}  // namespace settle::sagas
