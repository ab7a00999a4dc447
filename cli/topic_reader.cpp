#include "cli/topic_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "broker/attribute_names.hpp"
#include "cli/failure.hpp"
#include "queries/broker.hpp"
#include "queries/cli.hpp"

namespace settle::cli {
namespace {

[[noreturn]] void unknown_topic(transaction& tx, const std::string& name) {
  const auto names = tx.execute(queries::cli::read_topic_names);
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) known += (i > 0 ? ", " : "") + names[i][0].text();
  throw failure(errc::invalid_argument,
                known.empty()
                    ? fmt::format("there is no topic '{}'; the broker has none yet: publish an event and "
                                  "run `settle relay`",
                                  name)
                    : fmt::format("there is no topic '{}'; known topics: {}", name, known));
}

}  // namespace

topic_reader::topic_reader(database& broker, const std::string& topic) : broker_(broker), name_(topic) {
  auto tx = broker.read();
  const auto found = tx.execute(queries::broker::find_topic, {topic});
  if (found.empty()) unknown_topic(tx, topic);
  topic_ = found[0][0].integer();
  partitions_ = found[0][1].integer();
}

// Each partition gives its first few; the first few of all of them are among these.
std::vector<std::int64_t> topic_reader::after(std::int64_t position, std::int64_t count_max) {
  auto tx = broker_.read();
  std::vector<std::int64_t> found;
  for (std::int64_t partition = 0; partition < partitions_; ++partition) {
    const auto rows = tx.execute(queries::cli::first_positions, {topic_, partition, position, count_max});
    for (std::size_t i = 0; i < rows.size(); ++i) found.push_back(rows[i][0].integer());
  }
  std::ranges::sort(found);
  if (std::ssize(found) > count_max) found.resize(static_cast<std::size_t>(count_max));
  return found;
}

std::vector<std::int64_t> topic_reader::last(std::int64_t count_max) {
  auto tx = broker_.read();
  std::vector<std::int64_t> found;
  for (std::int64_t partition = 0; partition < partitions_; ++partition) {
    const auto rows = tx.execute(queries::cli::last_positions, {topic_, partition, count_max});
    for (std::size_t i = 0; i < rows.size(); ++i) found.push_back(rows[i][0].integer());
  }
  std::ranges::sort(found);
  if (std::ssize(found) > count_max) found.erase(found.begin(), found.end() - count_max);
  return found;
}

message topic_reader::at(std::int64_t position) {
  auto rows = broker_.read().execute(queries::cli::read_message, {position});
  if (rows.empty()) throw error(errc::store_unavailable, fmt::format("message {} is gone", position));
  message m;
  m.topic = name_;
  m.id = rows.take(0, 0).take_text();
  m.source = rows.take(0, 1).take_text();
  m.type = rows.take(0, 2).take_text();
  m.key = rows.take(0, 3).take_text();
  m.subject = rows.take(0, 4).take_text();
  m.content_type = rows.take(0, 5).take_text();
  m.time = rows[0][6].time();
  m.extensions = attributes_from_json(rows[0][7].text());
  rename_old_attributes(m.extensions);
  m.payload = rows.take(0, 8).take_bytes();
  return m;
}

std::int64_t topic_reader::head() {
  return broker_.read().execute(queries::broker::read_head)[0][0].integer();
}

}  // namespace settle::cli
