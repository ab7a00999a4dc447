#include "sqlite/groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "queries/broker.hpp"
#include "settle/error.hpp"
#include "sql/ownership.hpp"

namespace settle::inline v0::sqlite {
namespace {

struct found_group {
  std::string group;
  std::string topic;
  std::int64_t topic_number = 0;
  int partitions = 0;
  std::int64_t members_alive = 0;
  std::string scope;
};

group_extent measure(transaction& tx, const found_group& one) {
  namespace columns = queries::broker::measure_unread_columns;
  group_extent made{.group = one.group, .topic = one.topic, .members_alive = one.members_alive};
  for (int partition = 0; partition < one.partitions; ++partition) {
    const auto rows = tx.execute(queries::broker::measure_unread, {one.topic_number, partition, one.scope});
    const auto row = rows[0];
    if (row[columns::messages].integer() == 0) continue;
    made.unread += row[columns::messages].integer();
    made.oldest = std::min(made.oldest.value_or(timestamp::max()), row[columns::oldest].time());
    made.newest = std::max(made.newest.value_or(timestamp::min()), row[columns::newest].time());
  }
  return made;
}

std::vector<found_group> find(transaction& tx, const group_choice& which) {
  namespace columns = queries::broker::read_group_columns;
  const auto running = sql::running_at(tx.env().now(), duration::zero());
  const auto rows = tx.execute(queries::broker::read_group, {which.group, running.now, running.latest});
  std::vector<found_group> found;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const auto& group = row[columns::group_name].text();
    const auto& topic = row[columns::topic_name].text();
    const auto topic_number = row[columns::topic_number].integer();
    if (!which.topic.empty() && topic != which.topic) continue;
    found.push_back({group, topic, topic_number, static_cast<int>(row[columns::partitions].integer()),
                     row[columns::members_alive].integer(), fmt::format("group/{}/{}", topic_number, group)});
  }
  return found;
}

std::vector<found_group> find_idle(transaction& tx, const group_choice& which) {
  auto found = find(tx, which);
  if (found.empty() || which.group.empty())
    throw error(errc::invalid_argument,
                fmt::format("there is no group {}{}", which.group,
                            which.topic.empty() ? "" : " on the topic " + which.topic));
  for (const auto& one : found)
    if (one.members_alive > 0)
      throw error(errc::invalid_argument,
                  fmt::format("group {} has {} alive on {}: stop its consumers first; if they were killed, "
                              "their leases end by themselves",
                              one.group, one.members_alive == 1 ? "a member" : "members", one.topic));
  return found;
}

// Rows of shares stay: a member that slept has to find a higher epoch. Only their position says where a group
// is.
void place(transaction& tx, const found_group& one, timestamp to) {
  for (int partition = 0; partition < one.partitions; ++partition) {
    std::int64_t position = 0;
    if (to != timestamp::min())
      position = tx.execute(queries::broker::last_position_before,
                            {one.topic_number, partition,
                             to})[0][queries::broker::last_position_before_columns::position]
                     .integer();
    tx.execute(queries::broker::place_group, {one.scope, partition, position});
  }
  tx.execute(queries::broker::remove_members, {one.scope});
}

template <class Change>
std::vector<group_change> change(database& broker, const group_choice& which, std::string_view effect,
                                 const Change& what) {
  auto tx = broker.begin();
  std::vector<group_change> changes;
  for (const auto& one : find_idle(tx, which)) {
    const auto before = measure(tx, one);
    what(tx, one);
    changes.push_back({before, measure(tx, one)});
  }
  if (!which.only_look) tx.commit(effect);
  return changes;
}

}  // namespace

std::vector<group_extent> read_groups(database& broker) {
  auto tx = broker.read();
  std::vector<group_extent> all;
  for (const auto& one : find(tx, {})) all.push_back(measure(tx, one));
  return all;
}

std::vector<group_change> remove_group(database& broker, const group_choice& which) {
  return change(broker, which, "broker.remove_group", [&](transaction& tx, const found_group& one) {
    place(tx, one, timestamp::min());
    tx.execute(queries::broker::remove_group, {which.group, one.topic_number});
  });
}

std::vector<group_change> reset_group(database& broker, const group_choice& which, timestamp to) {
  return change(broker, which, "broker.reset_group",
                [&](transaction& tx, const found_group& one) { place(tx, one, to); });
}

}  // namespace settle::inline v0::sqlite
