#include "sqlite/log_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "queries/broker.hpp"
#include "wire/attribute_names.hpp"

namespace settle::inline v0::sqlite {
namespace {

namespace columns = queries::broker::read_partition_columns;

constexpr std::size_t worth_a_thread = 256;  // messages

message message_of(result& rows, std::size_t row, std::string_view topic) {
  auto extensions = attributes_from_json(rows[row][columns::extensions].text());
  rename_old_attributes(extensions);
  return {.id = rows.take(row, columns::event_id).take_text(),
          .source = rows.take(row, columns::source).take_text(),
          .type = rows.take(row, columns::event_type).take_text(),
          .topic = std::string(topic),
          .key = rows.take(row, columns::key).take_text(),
          .subject = rows.take(row, columns::subject).take_text(),
          .content_type = rows.take(row, columns::content_type).take_text(),
          .time = rows[row][columns::time].time(),
          .extensions = std::move(extensions),
          .payload = rows.take(row, columns::payload).take_bytes()};
}

std::optional<timestamp> stored_at(const result::row& of) {
  const auto& at = of[columns::stored_at];
  return at.is_null() ? std::nullopt : std::optional(at.time());
}

// What will be asked for next if nothing else happens: the partitions take turns to be the first.
log_request following(log_request last, const std::vector<log_message>& read) {
  for (const auto& one : read) last.from[one.from].after = one.position;
  std::ranges::rotate(last.from, last.from.begin() + 1);
  return last;
}

}  // namespace

std::vector<log_message> log_reader::read(const log_request& wanted) {
  std::vector<log_message> found;
  if (ahead_.valid()) {
    found = ahead_.get();
    // What was not full then may have more by now.
    if (wanted != expected_ || found.size() < wanted.most) found.clear();
  }
  if (found.empty()) found = read_now(wanted);
  if (found.size() == wanted.most && wanted.most >= worth_a_thread) {
    expected_ = following(wanted, found);
    ahead_ = std::async(std::launch::async, [this] { return read_now(expected_); });
  }
  return found;
}

std::vector<log_message> log_reader::read_now(const log_request& wanted) const {
  std::vector<log_message> all;
  if (wanted.from.empty()) return all;
  const auto fair = (wanted.most + wanted.from.size() - 1) / wanted.from.size();
  auto tx = file_.read();
  std::vector<result> parts;
  struct place {
    std::int64_t position;
    std::size_t part;
    std::size_t row;
  };
  std::vector<place> order;
  for (const auto& from : wanted.from) {
    const auto room = static_cast<std::int64_t>(std::min(fair, wanted.most - order.size()));
    parts.push_back(room == 0 ? result()
                              : tx.execute(queries::broker::read_partition,
                                           {from.topic, from.partition, from.after, room}));
    for (std::size_t row = 0; row < parts.back().size(); ++row)
      order.push_back({parts.back()[row][columns::position].integer(), parts.size() - 1, row});
  }
  std::ranges::sort(order, {}, &place::position);
  all.reserve(order.size());
  for (const auto& [position, part, row] : order)
    all.push_back({position, part, message_of(parts[part], row, wanted.from[part].topic_name),
                   stored_at(parts[part][row])});
  return all;
}

}  // namespace settle::inline v0::sqlite
