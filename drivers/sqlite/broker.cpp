#include "sqlite/broker.hpp"

#include <fmt/format.h>

#include <set>

#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "broker/admission.hpp"
#include "queries/broker.hpp"
#include "queries/migrations_sqlite_broker.hpp"
#include "settle/error.hpp"
#include "sql/migrations.hpp"
#include "sqlite/subscription.hpp"

namespace settle::inline v0::sqlite {
namespace {

// One commit serves this many concurrent callers, each with a batch of its own.
constexpr batcher_limits concurrent_calls{.batch_max = 16, .queue_max = 1024};

void check(const broker_options& opts) {
  if (opts.partitions < 1 || opts.partitions > 1024)
    throw error(errc::invalid_argument, "broker_options.partitions must be 1 to 1,024");
  if (opts.lease_ttl < std::chrono::milliseconds(50))
    throw error(errc::invalid_argument, "broker_options.lease_ttl must be at least 50 ms");
  if (opts.keep < duration::zero())
    throw error(errc::invalid_argument, "broker_options.keep must not be negative");
  if (opts.bytes_max < 1024 * 1024)
    throw error(errc::invalid_argument, "broker_options.bytes_max must be at least 1 MiB");
}

int partition_of(const message& m, int partitions) {
  const auto& by = m.key.empty() ? m.id : m.key;
  return static_cast<int>(stable_hash(by) % static_cast<std::uint64_t>(partitions));
}

parameters row_of(const message& m, const topic_info& topic, int partition, timestamp now) {
  return {topic.id,        partition, m.id,           m.source, m.type,
          m.key,           m.subject, m.content_type, m.time,   to_json(m.extensions),
          blob{m.payload}, now};
}

// What comes behind a message that is not taken is not taken either: a relay sends all of it again, and would
// leave another copy with every try.
void refuse_from(std::size_t first, const std::string& why, std::vector<publish_result>& answers) {
  for (auto n = first; n < answers.size(); ++n)
    answers[n] = {publish_status::destination_failed, error(errc::destination_unavailable, why).what()};
}

}  // namespace

embedded_broker::embedded_broker(const std::string& path, const broker_options& opts)
    : options_(opts),
      file_((check(opts), open(path, {.env = opts.env, .busy_timeout = opts.busy_timeout, .vfs = opts.vfs}))),
      batcher_([this](calls waiting) { return store(waiting); }, concurrent_calls) {
  sql::apply_migrations(*file_, migrations::sqlite_broker);
  id_ = file_->read()
            .execute(queries::broker::read_broker_id)[0][queries::broker::read_broker_id_columns::broker_id]
            .text();
}

topic_info embedded_broker::ensure_topic(transaction& tx, const std::string& name) const {
  auto found = tx.execute(queries::broker::find_topic, {name});
  if (found.empty()) {
    tx.execute(queries::broker::add_topic, {name, options_.partitions});
    found = tx.execute(queries::broker::find_topic, {name});
  }
  namespace columns = queries::broker::find_topic_columns;
  return {found[0][columns::topic].integer(), static_cast<int>(found[0][columns::partitions].integer())};
}

std::vector<publish_result> embedded_broker::publish(std::span<const message> batch,
                                                     const call_limits& limits) {
  auto [results, accepted] = admit(batch);
  if (accepted.empty()) return results;
  if (limits.stop.stop_requested()) {
    for (const auto i : accepted) results[i] = {publish_status::destination_failed, "stopped by the caller"};
    return results;
  }
  std::vector<message> copies;  // only if some are left out
  if (accepted.size() < batch.size())
    for (const auto i : accepted) copies.push_back(batch[i]);
  try {
    auto stored = batcher_.call(copies.empty() ? batch : std::span<const message>(copies));
    for (std::size_t n = 0; n < accepted.size(); ++n) results[accepted[n]] = std::move(stored[n]);
  } catch (const error& e) {
    for (const auto i : accepted) results[i] = {publish_status::destination_failed, e.what()};
  }
  return results;
}

std::vector<std::vector<publish_result>> embedded_broker::store(calls waiting) {
  auto tx = file_->begin();
  const auto room = room_for(tx);
  const auto now = file_->env().now();
  std::map<std::string, topic_info> topics;
  std::map<std::pair<std::int64_t, int>, std::int64_t> touched;  // messages per topic and partition
  std::vector<parameters> rows;
  std::vector<std::vector<publish_result>> results;
  for (const auto& call : waiting) {
    auto& answers = results.emplace_back(call.size());
    for (std::size_t n = 0; n < call.size(); ++n) {
      const auto& m = call[n];
      if (room.refuses(m.topic)) {
        refuse_from(n, room.trouble(file_->name()), answers);
        break;
      }
      auto known = topics.find(m.topic);
      if (known == topics.end()) known = topics.emplace(m.topic, ensure_topic(tx, m.topic)).first;
      const int partition = partition_of(m, known->second.partitions);
      ++touched[{known->second.id, partition}];
      room_.used_bytes += static_cast<std::int64_t>(m.payload.size());  // an estimate until it is asked again
      rows.push_back(row_of(m, known->second, partition, now));
    }
  }
  if (rows.empty()) {
    if (made_room_) tx.commit("broker.make_room");
    return results;
  }
  tx.execute_many(queries::broker::insert_message, rows);
  for (const auto& [where, count] : touched) expire(tx, where.first, where.second, 2 * count);
  tx.commit("broker.store");
  return results;
}

// Old messages go in slices, in transactions that commit anyway.
bool embedded_broker::expire(transaction& tx, std::int64_t topic, int partition,
                             std::int64_t rows_max) const {
  const auto now = file_->env().now();
  const auto remove = [&](std::int64_t looked_at) {
    const auto keep = tx.execute(queries::broker::first_message_to_keep,
                                 {topic, partition, now - options_.keep, looked_at});
    const auto first_kept = keep[0][queries::broker::first_message_to_keep_columns::first_kept].integer();
    return tx.execute(queries::broker::delete_messages_below, {topic, partition, first_kept}).affected();
  };
  if (remove(1) == 0) return false;  // the oldest has to stay: as a rule this is all that is looked at
  remove(rows_max);
  return true;
}

// Asked now and then, and every time when it becomes tight: it costs more than a small batch.
broker_room embedded_broker::room_for(transaction& tx) {
  constexpr int every = 64;
  room_.bytes_max = options_.bytes_max;
  if (room_.is_tight() || stores_++ % every == 0) room_ = read_room(tx, options_.bytes_max);
  made_room_ = (room_.is_full() || !room_.stuck.empty()) && make_room(tx);
  if (made_room_) room_ = read_room(tx, options_.bytes_max);
  return room_;
}

// Where nothing is stored nothing expires either, and what nobody needs any more would refuse messages for
// ever.
bool embedded_broker::make_room(transaction& tx) {
  namespace columns = queries::broker::read_all_topics_columns;
  constexpr std::int64_t slice = 100;  // per partition
  const auto topics = tx.execute(queries::broker::read_all_topics);
  bool gone = false;
  for (std::size_t i = 0; i < topics.size(); ++i)
    for (int partition = 0; partition < topics[i][columns::partitions].integer(); ++partition)
      gone = expire(tx, topics[i][columns::topic].integer(), partition, slice) || gone;
  return gone;
}

std::unique_ptr<subscription> embedded_broker::subscribe(const subscribe_options& options) {
  check_name(options.group, {"group", event_limits::name_bytes_max});
  if (options.topics.empty()) throw error(errc::invalid_argument, "a subscription needs at least one topic");
  std::set<std::string_view> seen;
  for (const auto& topic : options.topics) {
    check_name(topic, {"topic", event_limits::name_bytes_max});
    if (!seen.insert(topic).second)
      throw error(errc::invalid_argument, fmt::format("topic {} is listed twice in one subscription", topic));
  }
  return std::make_unique<embedded_subscription>(*this, options);
}

namespace {

class backlog_below final : public backlog {
 public:
  backlog_below(database& file, std::string group, const std::vector<std::string>& topics)
      : file_(file), group_(std::move(group)) {
    json_array list;
    for (const auto& one : topics) list.add(one);
    topics_ = list.text();
    end_ = file_.read()
               .execute(queries::broker::read_head)[0][queries::broker::read_head_columns::head]
               .integer();
  }
  bool is_done(const call_limits&) override {
    const auto found = file_.read().execute(queries::broker::waits_below, {group_, topics_, end_});
    return found[0][queries::broker::waits_below_columns::waits].integer() == 0;
  }

 private:
  database& file_;
  std::string group_, topics_;
  std::int64_t end_ = 0;  // of the whole file: a log per partition is a part of it
};

}  // namespace

std::unique_ptr<backlog> embedded_broker::backlog_of(const std::string& group,
                                                     const std::vector<std::string>& topics,
                                                     const call_limits&) {
  return std::make_unique<backlog_below>(*file_, group, topics);
}

std::unique_ptr<broker> open_broker(const std::string& path, const broker_options& opts) {
  return std::make_unique<embedded_broker>(path, opts);
}

}  // namespace settle::inline v0::sqlite
