#include "kafka/membership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/pause.hpp"
#include "kafka/failure.hpp"
#include "kafka/seams.hpp"

namespace settle::inline v0::kafka {
namespace {

std::string milliseconds(duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

client::settings settings_of(const cluster& at, const std::string& group) {
  const auto& with = at.settings();
  const auto session = std::min(with.session_timeout, with.silence_max);
  client::settings all{
      {"group.id", at.group_name(group)},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"auto.offset.reset", "error"},
      {"isolation.level", "read_committed"},
      {"partition.assignment.strategy", "roundrobin"},  // eager: cooperative-sticky aborts (2.0.2)
      {"session.timeout.ms", milliseconds(session)},
      {"heartbeat.interval.ms", milliseconds(std::min<duration>(session / 5, std::chrono::seconds(3)))},
      {"max.poll.interval.ms", milliseconds(with.silence_max)},
      {"queued.max.messages.kbytes", std::to_string(std::max<std::size_t>(1, with.read_ahead_bytes / 1024))},
      {"fetch.error.backoff.ms", "50"},
      {"topic.metadata.refresh.interval.ms", "10000"},  // a topic that was made again is noticed by then
  };
  if (!with.instance_id.empty()) all.emplace_back("group.instance.id", with.instance_id);
  for (auto& one : habits_of_the_library()) all.push_back(std::move(one));
  return all;
}

std::span<const rd_kafka_topic_partition_t> entries(const rd_kafka_topic_partition_list_t& of) {
  return {of.elems, static_cast<std::size_t>(of.cnt)};
}

std::vector<place> places_in(const rd_kafka_topic_partition_list_t& list) {
  std::vector<place> all;
  for (const auto& one : entries(list)) all.push_back({one.topic, one.partition});
  return all;
}

partition_list list_of(const std::vector<place>& places) {
  auto list = make_list(places.size());
  for (const auto& one : places)
    rd_kafka_topic_partition_list_add(list.get(), one.topic.c_str(), one.partition);
  return list;
}

// A C string that the list frees with its entry.
void set_metadata(rd_kafka_topic_partition_t& of, const std::string& text) {
  of.metadata = ::strdup(text.c_str());
  of.metadata_size = text.size();
}

}  // namespace

membership::membership(cluster& at, const std::string& group, hooks told)
    : told_(std::move(told)),
      on_(std::make_unique<client>(at.where(), at.settings(), RD_KAFKA_CONSUMER, settings_of(at, group),
                                   static_cast<listener*>(this))) {
  rd_kafka_poll_set_consumer(on_->get());
  queue_.reset(rd_kafka_queue_get_consumer(on_->get()));
}

// The library waits for ever for whoever does not answer when it asks about partitions (2.0.2), so one that
// was not closed is left alone.
membership::~membership() {
  told_ = {};
  if (!has_left_) leave(limit::within(std::chrono::seconds(1)));
  const bool is_closed = rd_kafka_consumer_closed(on_->get()) != 0;
  queue_.reset();
  if (!is_closed) client::abandon(std::move(on_));
}

void membership::join(const std::vector<std::string>& topics) {
  auto list = make_list(topics.size());
  for (const auto& one : topics)
    rd_kafka_topic_partition_list_add(list.get(), one.c_str(), RD_KAFKA_PARTITION_UA);
  if (const auto failed = rd_kafka_subscribe(on_->get(), list.get()); failed != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw refused(failed, on_->complaint("joining: " + text_of(failed)));
  has_joined_ = true;
}

void membership::leave(const limit& within) {
  constexpr duration pause_between = std::chrono::milliseconds(5);
  has_left_ = true;
  const auto until_assigned = within.at_most(std::chrono::seconds(1));
  while (has_joined_ && !was_assigned_ && !until_assigned.is_over())
    if (!poll()) settle::pause(pause_between, within.stop);
  const queue_handle farewell(rd_kafka_queue_new(on_->get()));
  if (const error_handle failed{rd_kafka_consumer_close_queue(on_->get(), farewell.get())}) return;
  while (rd_kafka_consumer_closed(on_->get()) == 0 && !within.is_over()) {
    const event_handle came(rd_kafka_queue_poll(farewell.get(), 20));  // messages too, which nobody wants
    if (came && rd_kafka_event_type(came.get()) == RD_KAFKA_EVENT_REBALANCE)
      rebalanced(rd_kafka_event_error(came.get()), *rd_kafka_event_topic_partition_list(came.get()));
  }
}

message_handle membership::poll() { return message_handle(rd_kafka_consumer_poll(on_->get(), 0)); }

// Whoever is assigned a partition reads it from the beginning, and is kept from that until it is known where
// the group stands: nothing is asked of a server inside of a callback.
void membership::rebalanced(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t& of) {
  const auto places = places_in(of);
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    was_assigned_ = true;
    for (auto& one : std::span(of.elems, static_cast<std::size_t>(of.cnt)))
      one.offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(on_->get(), &of);
    pause(places);
    if (told_.assigned) told_.assigned(places);
  } else {
    if (told_.revoked) told_.revoked(places, has_lost_assignment());
    rd_kafka_assign(on_->get(), nullptr);
  }
}

std::vector<committed_offset> membership::committed(const std::vector<place>& of, const limit& within) {
  const auto list = list_of(of);
  on_->ask(within, "committed offsets", [&](int within_ms) {
    const auto failed = rd_kafka_committed(on_->get(), list.get(), within_ms);
    return failed != RD_KAFKA_RESP_ERR_NO_ERROR ? failed : first_error(*list);
  });
  std::vector<committed_offset> all;
  for (const auto& one : entries(*list))
    all.push_back({{one.topic, one.partition},
                   one.offset,
                   std::string(static_cast<const char*>(one.metadata), one.metadata_size)});
  return all;
}

void membership::commit(const std::vector<committed_offset>& wanted, const limit& within) {
  on_->ask(within, "committing", [&](int) { return commit_once(wanted, within); });
}

rd_kafka_resp_err_t membership::commit_once(const std::vector<committed_offset>& wanted,
                                            const limit& within) {
  const auto list = make_list(wanted.size());
  for (const auto& one : wanted) {
    auto* entry = rd_kafka_topic_partition_list_add(list.get(), one.at.topic.c_str(), one.at.partition);
    entry->offset = one.offset;
    set_metadata(*entry, one.metadata);
  }
  const queue_handle answers(rd_kafka_queue_new(on_->get()));
  if (const auto failed = rd_kafka_commit_queue(on_->get(), list.get(), answers.get(), nullptr, nullptr);
      failed != RD_KAFKA_RESP_ERR_NO_ERROR)
    return failed;
  const auto answer = on_->await(*answers, within, "committing");
  if (const auto failed = rd_kafka_event_error(answer.get()); failed != RD_KAFKA_RESP_ERR_NO_ERROR)
    return failed;
  const auto* each = rd_kafka_event_topic_partition_list(answer.get());
  return each == nullptr ? RD_KAFKA_RESP_ERR_NO_ERROR : first_error(*each);
}

bool membership::seek(const place& at, std::int64_t offset, const limit& within) {
  const auto list = list_of({at});
  list->elems[0].offset = offset;
  const auto left = static_cast<int>(within.at_most(std::chrono::seconds(1)).left().count());
  const error_handle failed(rd_kafka_seek_partitions(on_->get(), list.get(), left));
  return !failed && list->elems[0].err == RD_KAFKA_RESP_ERR_NO_ERROR;
}

void membership::pause(const std::vector<place>& these) {
  if (!these.empty()) rd_kafka_pause_partitions(on_->get(), list_of(these).get());
}

// The library goes on when it next looks after its connections, in up to a second (2.0.2). Whoever asks the
// same servers for something wakes it up.
void membership::resume(const std::vector<place>& these) {
  if (these.empty()) return;
  const auto list = list_of(these);
  rd_kafka_resume_partitions(on_->get(), list.get());
  for (int i = 0; i < list->cnt; ++i) list->elems[i].offset = RD_KAFKA_OFFSET_END;
  constexpr int patience_ms = 100;
  rd_kafka_offsets_for_times(on_->get(), list.get(), patience_ms);
}

}  // namespace settle::inline v0::kafka
