#include "sqlite/room.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "queries/broker.hpp"
#include "sql/ownership.hpp"

namespace settle::inline v0::sqlite {

bool broker_room::refuses(const std::string& topic) const {
  return is_full() || (is_tight() && std::ranges::find(stuck, topic, &stuck_group::topic) != stuck.end());
}

std::string broker_room::trouble(const std::string& file) const {
  if (!is_full() && (!is_tight() || stuck.empty())) return {};
  auto text = fmt::format("{} holds {} bytes, bytes_max is {}", file, used_bytes, bytes_max);
  if (stuck.empty())
    return text +
           ": messages wait for groups that have not acknowledged them, or are younger than the time they "
           "are "
           "kept; `settle group list` tells";
  const auto& worst = stuck.front();
  text += fmt::format(": group {} has messages of {} to read and no member", worst.group, worst.topic);
  if (stuck.size() > 1) text += fmt::format(", and {} more like it", stuck.size() - 1);
  return text + "; start its consumer, or if it is retired, `settle group remove` lets them go";
}

broker_room read_room(transaction& tx, std::int64_t bytes_max) {
  broker_room room{
      tx.execute(queries::broker::used_bytes)[0][queries::broker::used_bytes_columns::bytes].integer(),
      bytes_max,
      {}};
  if (!room.is_tight()) return room;
  const auto running = sql::running_at(tx.env().now(), duration::zero());
  const auto rows = tx.execute(queries::broker::find_stuck_groups, {running.now, running.latest});
  namespace columns = queries::broker::find_stuck_groups_columns;
  for (std::size_t i = 0; i < rows.size(); ++i)
    room.stuck.push_back({rows[i][columns::group_name].text(), rows[i][columns::topic_name].text()});
  return room;
}

}  // namespace settle::inline v0::sqlite
