#include "kafka/publisher.hpp"

#include <fmt/format.h>

#include "broker/admission.hpp"
#include "kafka/failure.hpp"
#include "kafka/wire_message.hpp"

namespace settle::inline v0::kafka {
namespace {

publish_result failed(std::string why) { return {publish_status::destination_failed, std::move(why)}; }

using headers_handle = std::unique_ptr<rd_kafka_headers_t, destroyer<rd_kafka_headers_destroy>>;

headers_handle packed(const headers& from) {
  headers_handle made(rd_kafka_headers_new(from.size()));
  for (const auto& [name, value] : from)
    rd_kafka_header_add(made.get(), name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  return made;
}

}  // namespace

std::vector<publish_result> log_publisher::publish(std::span<const message> batch,
                                                   const call_limits& limits) {
  const auto within = limit::of(limits);
  auto [results, accepted] =
      admit(batch, [this](const message& m) { return unusable_name(at_.full_name(m.topic)); });
  if (accepted.empty()) return results;
  std::unique_lock lock(turn_);
  const bool mine = turn_changed_.wait_until(lock, within.stop, within.until, [&] { return !busy_; });
  if (!mine || within.stop.stop_requested()) {
    for (const auto i : accepted)
      results[i] = failed(within.stop.stop_requested() ? "stopped by the caller"
                                                       : "others publish for longer than the limit");
    return results;
  }
  busy_ = true;
  lock.unlock();
  try {
    with_fault_points(at_.settings().env, "broker.store",
                      [&] { publish_alone(batch, accepted, results, within); });
  } catch (const std::exception& e) {
    for (const auto i : accepted) results[i] = failed(e.what());
  }
  current_ = nullptr;
  lock.lock();
  busy_ = false;
  turn_changed_.notify_one();
  lock.unlock();
  hold_back_later_ones(batch, results);
  return results;
}

void log_publisher::publish_alone(std::span<const message> batch, const std::vector<std::size_t>& accepted,
                                  std::vector<publish_result>& results, const limit& within) {
  reports said(batch, accepted, results);
  current_ = &said;
  ensure_topics(batch, accepted, within);
  for (auto wanted = said.next(); !wanted.empty(); wanted = said.next()) {
    send(batch, wanted, within);
    await_reports(within);
    end_attempt(within);
  }
  note_lost_topics(batch, results);
}

// A topic that is not there, or cannot be made, fails alone.
void log_publisher::ensure_topics(std::span<const message> batch, const std::vector<std::size_t>& accepted,
                                  const limit& within) {
  for (const auto i : accepted) {
    const auto& topic = batch[i].topic;
    if (known_topics_.contains(topic) || !current_->may_send(i)) continue;
    try {
      find_topic(topic, within);
    } catch (const refused& e) {
      if (status_of(e.code()) != publish_status::topic_unavailable) throw;
      current_->refuse(i, {publish_status::topic_unavailable, e.what()});
    }
  }
}

// One that was there is not made again: somebody has deleted it, with what was in it.
void log_publisher::find_topic(const std::string& topic, const limit& within) {
  const auto full = at_.full_name(topic);
  if (!lost_topics_.contains(topic))
    at_.ensure(full, within);
  else if (!at_.partitions(full, within))
    throw refused(
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        fmt::format("topic {} has been deleted: its messages wait until somebody creates it", full));
  known_topics_.insert(topic);
}

// What has become of the topics of a batch is looked at again by the next one.
void log_publisher::note_lost_topics(std::span<const message> batch,
                                     const std::vector<publish_result>& results) {
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (results[i].status == publish_status::topic_unavailable && known_topics_.erase(batch[i].topic) > 0)
      lost_topics_.insert(batch[i].topic);
}

// Without a timeout of its own: what is given up here is called back, so that nothing behind it is stored.
// One request at a time: a server knows nothing of a producer whose first batch it has refused, and would
// take the next one, which has to come after the refused one.
void log_publisher::connect() {
  if (producer_ && rd_kafka_fatal_error(producer_->get(), nullptr, 0) == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  producer_.reset();
  const client::settings more{
      {"acks", "all"},
      {"enable.idempotence", "true"},
      {"enable.gapless.guarantee", "true"},
      {"max.in.flight.requests.per.connection", "1"},
      {"message.timeout.ms", "0"},
      {"linger.ms", "0.2"},  // for the rest of a batch to be there; less makes many small requests
      {"partitioner", "murmur2_random"},
      {"message.max.bytes", std::to_string(at_.settings().message_bytes_max)},
      {"topic.metadata.propagation.max.ms", "5000"},
  };
  producer_ = std::make_unique<client>(at_.where(), at_.settings(), RD_KAFKA_PRODUCER, more,
                                       static_cast<listener*>(this));
}

void log_publisher::send(std::span<const message> batch, const std::vector<std::size_t>& wanted,
                         const limit& within) {
  constexpr std::size_t between_looks = 64;
  trouble_.clear();
  connect();
  std::size_t sent = 0;
  for (const auto i : wanted) {
    if (current_->has_failed()) return;
    if (!current_->may_send(i)) continue;
    if (!produce(batch[i], i, within)) return;
    if (++sent % between_looks == 0) rd_kafka_poll(producer_->get(), 0);
  }
}

// False: nothing more of this attempt can be sent.
bool log_publisher::produce(const message& what, std::size_t index, const limit& within) {
  const auto topic = at_.full_name(what.topic);
  auto with = packed(headers_of(what));
  while (true) {
    const auto answer = rd_kafka_producev(
        producer_->get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(what.key.empty() ? nullptr : what.key.data(), what.key.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(what.payload.data()), what.payload.size()),
        RD_KAFKA_V_HEADERS(with.get()), RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(index)), RD_KAFKA_V_END);
    if (answer == RD_KAFKA_RESP_ERR_NO_ERROR) {
      (void)with.release();  // the message's own from here on
      current_->sent(index);
      return true;
    }
    if (answer != RD_KAFKA_RESP_ERR__QUEUE_FULL || within.is_over()) {
      const auto why = producer_->complaint(text_of(answer));
      if (const auto status = status_of(answer); status != publish_status::destination_failed) {
        current_->refuse(index, {status, why});
        return true;
      }
      current_->take(index, answer, why);
      trouble_ = why;
      return false;
    }
    rd_kafka_poll(producer_->get(),
                  static_cast<int>(within.at_most(std::chrono::milliseconds(10)).left().count()));
  }
}

void log_publisher::await_reports(const limit& within) {
  const queue_handle main(rd_kafka_queue_get_main(producer_->get()));
  const std::stop_callback wake(within.stop, [&] { rd_kafka_queue_yield(main.get()); });
  constexpr duration slice = std::chrono::milliseconds(250);
  while (!current_->complete() && !current_->has_failed() && !within.is_over())
    rd_kafka_poll(producer_->get(), static_cast<int>(within.at_most(slice).left().count()));
}

// Whatever has no report is called back. What was on its way may still be stored, but only if all before it
// of its partition was: the server knows the numbers of a producer. The next one has new numbers.
void log_publisher::end_attempt(const limit& within) {
  if (!current_->complete() || current_->has_failed()) {
    if (trouble_.empty())
      trouble_ = producer_->complaint(within.stop.stop_requested() ? "stopped by the caller"
                                                                   : "not confirmed within the limit");
    rd_kafka_purge(producer_->get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    constexpr int reports_within_ms = 100;
    rd_kafka_poll(producer_->get(), reports_within_ms);
    producer_.reset();
  }
  current_->end_attempt(trouble_);
}

void log_publisher::reported(const rd_kafka_message_t& sent) {
  if (current_ == nullptr) return;
  const auto index = reinterpret_cast<std::size_t>(sent._private);
  if (sent.err == RD_KAFKA_RESP_ERR_NO_ERROR) return current_->take(index, sent.err, {});
  const auto why = producer_->complaint(text_of(sent.err));
  if (trouble_.empty()) trouble_ = why;
  current_->take(index, sent.err, why);
}

}  // namespace settle::inline v0::kafka
