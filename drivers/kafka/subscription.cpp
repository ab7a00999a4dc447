#include "kafka/subscription.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/pause.hpp"
#include "base/text.hpp"
#include "kafka/failure.hpp"
#include "kafka/record.hpp"
#include "kafka/seams.hpp"
#include "settle/event.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0::kafka {
namespace {

// A tag's partition number holds the topic's index in the subscription and the partition within it.
constexpr std::uint32_t partition_bits = 16;
constexpr duration farewell_within = std::chrono::seconds(3);
constexpr duration look_again_at_a_gap = std::chrono::seconds(30);
constexpr duration look_again_at_names = std::chrono::milliseconds(200);
constexpr auto was_made_anew = "the topic was made anew, or the group was reset";
constexpr auto was_silent = "the member was silent for too long";
constexpr duration look_again_at_a_start = std::chrono::milliseconds(5);

void check(const cluster& at, const subscribe_options& wanted) {
  check_name(wanted.group, {"group", event_limits::name_bytes_max});
  if (wanted.topics.empty()) throw error(errc::invalid_argument, "a subscription needs at least one topic");
  std::set<std::string_view> seen;
  for (const auto& topic : wanted.topics) {
    check_name(topic, {"topic", event_limits::name_bytes_max});
    if (!seen.insert(topic).second)
      throw error(errc::invalid_argument, fmt::format("topic {} is listed twice in one subscription", topic));
    if (const auto why = unusable_name(at.full_name(topic)); !why.empty())
      throw error(errc::invalid_name, fmt::format("topic {}: {}", topic, why));
  }
}

std::optional<timestamp> stored_at(const rd_kafka_message_t& of) {
  rd_kafka_timestamp_type_t type{};
  const auto ms = rd_kafka_message_timestamp(&of, &type);
  if (type != RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME) return std::nullopt;
  return timestamp(std::chrono::milliseconds(ms));
}

std::size_t bytes_of(const rd_kafka_message_t& of) { return of.len + of.key_len + sizeof of; }

}  // namespace

group_subscription::group_subscription(cluster& at, const subscribe_options& wanted)
    : at_(at), group_(wanted.group), topics_(wanted.topics), before_revoked_(wanted.before_revoked) {
  check(at, wanted);
  for (const auto& topic : topics_) full_topics_.push_back(at.full_name(topic));
  arrived_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (arrived_ < 0) throw error(errc::destination_unavailable, "no file descriptor is left");
  try {
    with_fault_points(at_.settings().env, "broker.subscribe",
                      [&] { connect(limit::within(call_limits{}.within)); });
  } catch (...) {
    member_.reset();
    ::close(arrived_);
    throw;
  }
}

group_subscription::~group_subscription() {
  waiting_.clear();  // messages go before their client
  member_.reset();
  ::close(arrived_);
}

void group_subscription::connect(const limit& within) {
  if (member_) return;
  for (const auto& topic : full_topics_) at_.ensure(topic, within);
  auto made = std::make_unique<membership>(
      at_, group_,
      membership::hooks{[this](const auto& these) { assigned(these); },
                        [this](const auto& these, bool lost) { revoked(these, lost); }});
  const std::uint64_t one = 1;
  rd_kafka_queue_io_event_enable(&made->queue(), arrived_, &one, sizeof one);
  member_ = std::move(made);
  try {
    introduce(within);
    member_->join(full_topics_);
  } catch (...) {
    member_.reset();
    throw;
  }
}

// A group begins with the oldest message that there is when it first comes, not when it first gets a
// partition. Once it has members, they do this for whatever they are assigned.
void group_subscription::introduce(const limit& within) {
  std::vector<place> all;
  for (const auto& topic : full_topics_)
    for (int i = 0, count = at_.ensure(topic, within); i < count; ++i) all.push_back({topic, i});
  std::vector<committed_offset> news;
  for (auto& one : member_->committed(all, within)) {
    if (one.offset >= 0) continue;
    one.offset = first_offset(at_.extent_of(one.at.topic, one.at.partition, within));
    one.metadata = make_mark(at_.settings().env.random->next());
    news.push_back(std::move(one));
  }
  if (news.empty()) return;
  try {
    member_->commit(news, within);
  } catch (const refused& e) {
    if (!means_lost(e.code())) throw;  // else it has members
  }
}

std::uint32_t group_subscription::tag_of(const place& at) const {
  const auto found = std::ranges::find(full_topics_, at.topic);
  return static_cast<std::uint32_t>(found - full_topics_.begin()) << partition_bits |
         static_cast<std::uint32_t>(at.partition);
}

void group_subscription::assigned(const std::vector<place>& these) {
  for (const auto& one : these) held_.insert_or_assign(one, partition_state{tag_of(one)});
  is_unsettled_ = true;
}

// Inside of the library, through which nothing may be thrown.
void group_subscription::revoked(const std::vector<place>& these, bool lost) {
  const bool matters = std::ranges::any_of(these, [&](const auto& one) {
    const auto found = held_.find(one);
    return found != held_.end() && found->second.open;
  });
  if (matters && !lost && before_revoked_) try {
      before_revoked_();
    } catch (const refused&) {  // what was not acknowledged comes again, and is recognised
    } catch (...) {
      thrown_ = std::current_exception();
    }
  for (const auto& one : these) {
    const auto found = held_.find(one);
    if (found == held_.end()) continue;
    end_session(found->second, true);
    held_.erase(found);
  }
}

void group_subscription::end_session(partition_state& of, bool tell) {
  drop_waiting(of.tag);
  if (!of.open) return;
  of.open.reset();
  const auto reported = std::ranges::find(assigned_, of.tag, &assigned_partition::partition);
  if (reported != assigned_.end())
    assigned_.erase(reported);  // nobody has heard of it
  else if (tell)
    revoked_.push_back(of.tag);
}

void group_subscription::drop_waiting(std::uint32_t tag) {
  std::erase_if(waiting_, [&](const auto& one) {
    if (one.tag == tag) waiting_bytes_ -= bytes_of(*one.content);
    return one.tag == tag;
  });
}

// If they are still ours, they get new sessions.
void group_subscription::lose_everything(const char* why) {
  for (auto& [at, state] : held_) end_session(state, true);
  is_unsettled_ = true;
  at_.settings().env.log->write(log_level::warning, "partitions_lost",
                                {{"group", group_}, {"topic", topics_.front()}, {"error", why}});
}

bool group_subscription::has_sessions() const {
  return std::ranges::any_of(held_, [](const auto& one) { return one.second.open.has_value(); });
}

fetched group_subscription::fetch(std::size_t messages_max, const call_limits& limits) {
  const auto within = limit::of(limits);
  connect(within);
  commit_done(within);
  if (has_sessions() && member_->has_lost_assignment()) lose_everything(was_silent);
  take_events();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  begin_sessions(within);
  if (const auto why = std::exchange(down_, std::nullopt); why && waiting_.empty())
    throw error(errc::destination_unavailable, *why);
  fetched out;
  out.deliveries = deliver(messages_max);
  hold_back_if_full();
  out.revoked = std::exchange(revoked_, {});
  out.assigned = std::exchange(assigned_, {});
  return out;
}

// Everything that the library has, so that what concerns our partitions is not kept waiting behind messages
// that nobody wants yet.
void group_subscription::take_events() {
  while (auto one = member_->poll()) {
    take(std::move(one));
    hold_back_if_full();
  }
}

void group_subscription::take(message_handle one) {
  if (one->err == RD_KAFKA_RESP_ERR__PARTITION_EOF || one->err == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED)
    return;  // of the latter, what matters is that the partitions are lost
  const auto found =
      one->rkt == nullptr ? held_.end() : held_.find({rd_kafka_topic_name(one->rkt), one->partition});
  if (one->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (found == held_.end() || !found->second.open) return;  // read before it was known where to begin
    waiting_bytes_ += bytes_of(*one);
    waiting_.push_back({found->second.tag, std::move(one)});
  } else if (one->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && found != held_.end()) {
    end_session(found->second, true);  // the place has gone: to be looked at anew
    is_unsettled_ = true;
  } else {
    if (one->rkt != nullptr && means_gone(one->err)) lose_topic(rd_kafka_topic_name(one->rkt));
    down_ = member_->complaint(text_of(one->err));
  }
}

// Somebody has deleted it. If it is there again, it is another log, and its offsets mean something else.
void group_subscription::lose_topic(const std::string& topic) {
  for (auto& [at, state] : held_)
    if (at.topic == topic) end_session(state, true);
  is_unsettled_ = true;
}

void group_subscription::hold_back_if_full() {
  const auto most = at_.settings().read_ahead_bytes;
  const bool full = holds_back_ ? waiting_bytes_ > most / 2 : waiting_bytes_ > most;
  if (full == holds_back_) return;
  holds_back_ = full;
  std::vector<place> these;
  for (const auto& [at, state] : held_)
    if (state.open) these.push_back(at);
  full ? member_->pause(these) : member_->resume(these);
}

void group_subscription::begin_sessions(const limit& within) {
  if (!is_unsettled_) return;
  is_unsettled_ = false;
  std::vector<place> begun;
  try {
    for (const auto& one : positions(within))
      if (begin_session(one, within)) begun.push_back(one.at);
  } catch (...) {
    is_unsettled_ = true;
    read_on(begun);
    throw;
  }
  read_on(begun);
}

// All at once: the library asks a server for one answer at a time, and who is not in the question waits for
// the next.
void group_subscription::read_on(const std::vector<place>& these) {
  if (!holds_back_) member_->resume(these);
}

// Of partitions without a session, where the group stands; those that it has never seen get a mark.
std::vector<committed_offset> group_subscription::positions(const limit& within) {
  const auto now = limit::clock::now();
  std::vector<place> wanted;
  for (const auto& [at, state] : held_) {
    if (state.open) continue;
    if (state.retry_at <= now)
      wanted.push_back(at);
    else
      is_unsettled_ = true;
  }
  if (wanted.empty() || member_->has_lost_assignment()) return {};
  auto found = member_->committed(wanted, within);
  std::vector<committed_offset> news;
  for (auto& one : found) {
    if (one.offset >= 0 && is_mark(one.metadata)) continue;
    if (one.offset < 0) one.offset = first_offset(at_.extent_of(one.at.topic, one.at.partition, within));
    one.metadata = make_mark(at_.settings().env.random->next());
    news.push_back(one);
  }
  if (!news.empty()) member_->commit(news, within);
  return found;
}

bool group_subscription::begin_session(const committed_offset& at, const limit& within) {
  auto& state = held_.at(at.at);
  const auto found = start_at(at.offset, at_.extent_of(at.at.topic, at.at.partition, within));
  auto mark = at.metadata;
  if (found.has_gap()) {
    report_gap(at.at, found);
    if (at_.settings().on_gap == gap::stop) {
      state.retry_at = limit::clock::now() + look_again_at_a_gap;
      is_unsettled_ = true;
      return false;
    }
    if (found.is_other_log) mark = make_mark(at_.settings().env.random->next());
    member_->commit({{at.at, found.offset, mark}}, within);
  }
  if (!member_->seek(at.at, found.offset, within)) {
    state.retry_at = limit::clock::now() + look_again_at_a_start;
    is_unsettled_ = true;
    return false;
  }
  state.open.emplace(session{++sessions_, mark, ack_tracker(found.offset - 1)});
  assigned_.push_back({state.tag, sessions_, log_name(at.at.topic, at.at.partition, mark)});
  return true;
}

void group_subscription::report_gap(const place& in, const start& found) {
  const auto& env = at_.settings().env;
  env.counters->add("settle_kafka_gaps_total", {{"group", group_}, {"topic", in.topic}});
  env.log->write(log_level::error, "messages_missing",
                 {{"group", group_},
                  {"topic", in.topic},
                  {"partition", std::to_string(in.partition)},
                  {"from", std::to_string(found.missing_from)},
                  {"up_to", found.is_other_log ? "another log" : std::to_string(found.missing_up_to)},
                  {"held", at_.settings().on_gap == gap::stop ? "yes" : "no"}});
}

std::vector<delivery> group_subscription::deliver(std::size_t messages_max) {
  std::vector<delivery> all;
  while (all.size() < messages_max && !waiting_.empty()) {
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    const auto& from = *next.content;
    waiting_bytes_ -= bytes_of(from);
    const place at{rd_kafka_topic_name(from.rkt), from.partition};
    auto& open = *held_.at(at).open;
    open.tracker.delivered(from.offset);
    was_handed_out(*member_, at, from.offset, open.mark);
    all.push_back({.content = content_of(from, topics_[next.tag >> partition_bits], at_.mapping_of(at.topic)),
                   .tag = {next.tag, open.number, static_cast<std::uint64_t>(from.offset)},
                   .at = log_position::of(from.offset),
                   .stored_at = stored_at(from)});
  }
  return all;
}

void group_subscription::acknowledge(std::span<const delivery_tag> done, const call_limits& limits) {
  for (const auto& tag : done) {
    const place at{full_topics_.at(tag.partition >> partition_bits),
                   static_cast<int>(tag.partition & ((1U << partition_bits) - 1))};
    const auto offset = static_cast<std::int64_t>(tag.number);
    const auto found = held_.find(at);
    if (found != held_.end() && found->second.open && found->second.open->number == tag.session)
      found->second.open->tracker.done(offset);
    else if (member_)
      acknowledged_too_late(*member_, at, offset);
  }
  commit_done(limit::of(limits));
}

// What fails here is tried again by the next call: the trackers remember.
void group_subscription::commit_done(const limit& within) {
  std::vector<committed_offset> moved;
  for (const auto& [at, state] : held_)
    if (state.open && state.open->tracker.has_news())
      moved.push_back({at, state.open->tracker.done_through() + 1, state.open->mark});
  if (moved.empty()) return;
  if (member_->has_lost_assignment()) return lose_everything(was_silent);
  if (lose_logs_that_are_gone(moved, within)) return;
  try {
    with_fault_points(at_.settings().env, "broker.acknowledge", [&] { member_->commit(moved, within); });
  } catch (const refused& e) {
    if (!means_lost(e.code())) throw;
    return lose_everything(e.what());
  }
  for (const auto& one : moved)
    if (auto& open = held_.at(one.at).open) open->tracker.committed(one.offset - 1);
}

// Kafka forgets what a group has committed together with the topic. So a name that is gone tells that the
// topic was made anew while we read from it; our next commit would wipe out that trace.
bool group_subscription::lose_logs_that_are_gone(const std::vector<committed_offset>& moved,
                                                 const limit& within) {
  const auto now = limit::clock::now();
  if (now < look_at_names_at_) return false;
  look_at_names_at_ = now + look_again_at_names;
  std::vector<place> places;
  for (const auto& one : moved) places.push_back(one.at);
  bool found = false;
  for (const auto& one : member_->committed(places, within)) {
    auto& state = held_.at(one.at);
    if (!state.open || one.metadata == state.open->mark) continue;
    end_session(state, true);
    is_unsettled_ = found = true;
    at_.settings().env.log->write(log_level::warning, "partitions_lost",
                                  {{"group", group_}, {"topic", one.at.topic}, {"error", was_made_anew}});
  }
  return found;
}

void group_subscription::doubt(std::uint32_t partition) {
  for (auto& [at, state] : held_)
    if (state.tag == partition) end_session(state, false);
  is_unsettled_ = true;
}

std::vector<settled_partition> group_subscription::settled() const {
  std::vector<settled_partition> all;
  for (const auto& [at, state] : held_) {
    if (!state.open) continue;
    const auto through = state.open->tracker.committed_through();
    all.push_back({state.tag, log_name(at.topic, at.partition, state.open->mark),
                   through < 0 ? log_position() : log_position::of(through)});
  }
  return all;
}

void group_subscription::leave() noexcept {
  const auto within = limit::within(farewell_within);
  try {
    if (member_) commit_done(within);
  } catch (const std::exception&) {  // what was not acknowledged comes again, and is recognised
  }
  try {
    if (member_) member_->leave(within);
  } catch (const std::exception&) {  // the group notices when the session ends
  }
  waiting_.clear();
  waiting_bytes_ = 0;
  member_.reset();
  held_.clear();
  revoked_.clear();
  assigned_.clear();
  holds_back_ = is_unsettled_ = false;
  thrown_ = nullptr;
  down_.reset();
}

duration group_subscription::until_the_next_look() const {
  auto soonest = duration::max();
  for (const auto& [at, state] : held_)
    if (!state.open)
      soonest = std::min(soonest, std::chrono::duration_cast<duration>(
                                      std::max(state.retry_at, limit::clock::now()) - limit::clock::now()));
  return std::max(soonest, look_again_at_a_start);
}

void group_subscription::wait(duration at_most, std::stop_token stop) {
  if (!member_) return pause(at_most, stop);
  if (!waiting_.empty() || member_->is_waiting() || stop.stop_requested()) return;
  at_most = std::min(at_most, at_.settings().silence_max / 3);  // who sleeps longer is taken for dead
  if (is_unsettled_) at_most = std::min(at_most, until_the_next_look());
  const std::stop_callback wake(stop, [this] { ::eventfd_write(arrived_, 1); });
  pollfd watched{arrived_, POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  ::poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(ms, 60'000)));
  eventfd_t count = 0;
  ::eventfd_read(arrived_, &count);
}

}  // namespace settle::inline v0::kafka
