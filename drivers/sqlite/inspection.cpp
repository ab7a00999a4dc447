#include "sqlite/inspection.hpp"

#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "queries/broker.hpp"
#include "settle/error.hpp"
#include "sql/ownership.hpp"
#include "sqlite/groups.hpp"
#include "wire/attribute_names.hpp"

namespace settle::inline v0::sqlite {
namespace {

constexpr std::int64_t scan_page = 20'000;  // messages that a scan reads at once, without their payloads

// A place is the position in the file's log, which all topics share.
std::int64_t position_of(const log_position& place) {
  if (place.empty()) return 0;
  const auto number = place.number();
  if (!number) throw error(errc::invalid_argument, "this is no place in a topic of the embedded broker");
  return *number;
}

// What SQLite takes for a limit: below zero means no limit.
std::int64_t limit_of(std::size_t most) {
  return most > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())
             ? -1
             : static_cast<std::int64_t>(most);
}

struct partitioned {
  std::int64_t topic = 0;
  std::int64_t partitions = 0;
};

std::optional<partitioned> find_topic(transaction& tx, const std::string& name) {
  namespace columns = queries::broker::find_topic_columns;
  const auto found = tx.execute(queries::broker::find_topic, {name});
  if (found.empty()) return std::nullopt;
  return partitioned{found[0][columns::topic].integer(), found[0][columns::partitions].integer()};
}

// Each partition gives its first few; the first few of all of them are among these.
std::vector<std::int64_t> positions_after(transaction& tx, const partitioned& topic, std::int64_t after,
                                          std::size_t most) {
  std::vector<std::int64_t> found;
  for (std::int64_t partition = 0; partition < topic.partitions; ++partition) {
    const auto rows =
        tx.execute(queries::broker::first_positions, {topic.topic, partition, after, limit_of(most)});
    for (std::size_t i = 0; i < rows.size(); ++i)
      found.push_back(rows[i][queries::broker::first_positions_columns::position].integer());
  }
  std::ranges::sort(found);
  if (found.size() > most) found.resize(most);
  return found;
}

message read_message(transaction& tx, const std::string& topic, std::int64_t position) {
  namespace columns = queries::broker::read_message_columns;
  auto rows = tx.execute(queries::broker::read_message, {position});
  message m;
  m.topic = topic;
  m.id = rows.take(0, columns::event_id).take_text();
  m.source = rows.take(0, columns::source).take_text();
  m.type = rows.take(0, columns::event_type).take_text();
  m.key = rows.take(0, columns::key).take_text();
  m.subject = rows.take(0, columns::subject).take_text();
  m.content_type = rows.take(0, columns::content_type).take_text();
  m.time = rows[0][columns::time].time();
  m.extensions = attributes_from_json(rows[0][columns::extensions].text());
  rename_old_attributes(m.extensions);
  m.payload = rows.take(0, columns::payload).take_bytes();
  return m;
}

// A group on a topic, and how far it has acknowledged each partition.
struct acknowledging_group {
  std::string name;
  std::map<std::int64_t, std::int64_t> positions;  // by partition; one without a row: nothing

  bool waits_for(std::int64_t partition, std::int64_t position) const {
    const auto upto = positions.find(partition);
    return upto == positions.end() || position > upto->second;
  }
};

using groups_by_topic = std::map<std::int64_t, std::vector<acknowledging_group>>;

groups_by_topic scan_groups(transaction& tx,
                            const std::function<void(std::string_view, std::string_view)>& tell) {
  namespace columns = queries::broker::scan_groups_columns;
  const auto rows = tx.execute(queries::broker::scan_groups);
  groups_by_topic all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    auto& of_topic = all[row[columns::topic_number].integer()];
    const auto& name = row[columns::group_name].text();
    if (of_topic.empty() || of_topic.back().name != name) {
      of_topic.push_back({name, {}});
      tell(name, row[columns::topic_name].text());
    }
    if (!row[columns::partition].is_null())
      of_topic.back().positions[row[columns::partition].integer()] = row[columns::position].integer();
  }
  return all;
}

}  // namespace

bool is_broker_file(database& file) {
  return file.read()
             .execute(queries::broker::find_broker)[0][queries::broker::find_broker_columns::found]
             .integer() != 0;
}

std::optional<std::int64_t> embedded_inspection::stored_bytes() {
  return file_.read()
      .execute(queries::broker::used_bytes)[0][queries::broker::used_bytes_columns::bytes]
      .integer();
}

std::vector<inspected_topic> embedded_inspection::topics(std::size_t topics_max) {
  namespace columns = queries::broker::inspect_topics_columns;
  const auto rows = file_.read().execute(queries::broker::inspect_topics, {limit_of(topics_max)});
  std::vector<inspected_topic> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({rows[i][columns::name].text(), rows[i][columns::partitions].integer(),
                   rows[i][columns::messages].integer()});
  return all;
}

std::vector<inspected_group> embedded_inspection::groups(const inspect_groups& wanted) {
  std::vector<inspected_group> all;
  if (wanted.with_times) {
    for (auto& one : read_groups(file_)) {
      if (all.size() == wanted.groups_max) break;
      all.push_back({std::move(one.group), std::move(one.topic), one.members_alive, one.unread, one.oldest,
                     one.newest});
    }
    return all;
  }
  namespace columns = queries::broker::inspect_groups_columns;
  const auto running = sql::running_at(file_.env().now(), duration::zero());
  const auto rows = file_.read().execute(queries::broker::inspect_groups,
                                         {running.now, running.latest, limit_of(wanted.groups_max)});
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({rows[i][columns::group_name].text(), rows[i][columns::topic_name].text(),
                   rows[i][columns::members_alive].integer(), rows[i][columns::lag].integer(), std::nullopt,
                   std::nullopt});
  return all;
}

std::vector<placed_message> embedded_inspection::read(const std::string& topic, const log_position& after,
                                                      const read_limits& limits) {
  auto tx = file_.read();
  std::vector<placed_message> found;
  const auto known = find_topic(tx, topic);
  if (!known) return found;
  std::size_t bytes = 0;
  for (const auto position : positions_after(tx, *known, position_of(after), limits.messages_max)) {
    auto content = read_message(tx, topic, position);
    bytes += content.payload.size();
    if (bytes > limits.bytes_max && !found.empty()) break;
    found.push_back({log_position::of(position), std::move(content)});
  }
  return found;
}

log_position embedded_inspection::before_last(const std::string& topic, std::size_t messages) {
  auto tx = file_.read();
  if (messages == 0)
    return log_position::of(
        tx.execute(queries::broker::read_head)[0][queries::broker::read_head_columns::head].integer());
  const auto known = find_topic(tx, topic);
  if (!known) return {};
  std::vector<std::int64_t> found;
  for (std::int64_t partition = 0; partition < known->partitions; ++partition) {
    const auto rows =
        tx.execute(queries::broker::last_positions, {known->topic, partition, limit_of(messages)});
    for (std::size_t i = 0; i < rows.size(); ++i)
      found.push_back(rows[i][queries::broker::last_positions_columns::position].integer());
  }
  if (found.size() < messages) return {};
  std::ranges::sort(found);
  return log_position::of(found[found.size() - messages] - 1);
}

void embedded_inspection::scan(
    const std::function<void(std::string_view group, std::string_view topic)>& group,
    const std::function<void(const kept_message&)>& kept) {
  namespace columns = queries::broker::scan_messages_columns;
  auto tx = file_.read();
  const auto groups = scan_groups(tx, group);
  std::vector<std::string_view> waiting;
  for (std::int64_t after = 0;;) {
    const auto rows = tx.execute(queries::broker::scan_messages, {after, scan_page});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = rows[i];
      after = row[columns::position].integer();
      waiting.clear();
      if (const auto listening = groups.find(row[columns::topic_number].integer()); listening != groups.end())
        for (const auto& one : listening->second)
          if (one.waits_for(row[columns::partition].integer(), after)) waiting.emplace_back(one.name);
      kept({row[columns::event_id].text(), row[columns::topic_name].text(), waiting});
    }
    if (rows.size() < static_cast<std::size_t>(scan_page)) return;
  }
}

}  // namespace settle::inline v0::sqlite
