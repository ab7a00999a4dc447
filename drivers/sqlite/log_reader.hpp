// Reads messages from the embedded broker's log. While there is a backlog, the next ones are read in a thread
// beside the handlers of the last.
#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "settle/database.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::sqlite {

// A partition, and what is wanted of it.
struct log_cursor {
  std::int64_t topic = 0;
  std::string_view topic_name;
  int partition = 0;
  std::int64_t after = 0;  // position of the last message that is not wanted
  bool operator==(const log_cursor&) const = default;
};

// Each partition gives at most its share of `most`.
struct log_request {
  std::vector<log_cursor> from;
  std::size_t most = 0;
  bool operator==(const log_request&) const = default;
};

struct log_message {
  std::int64_t position = 0;
  std::size_t from = 0;  // index of its cursor
  message content;
  std::optional<timestamp> stored_at;  // none: by a version that did not note it
};

class log_reader {
 public:
  explicit log_reader(database& file) : file_(file) {}

  // In the order of the log, whatever partition they are of: so the claims of a consumer append to its
  // records.
  std::vector<log_message> read(const log_request& wanted);

 private:
  std::vector<log_message> read_now(const log_request& wanted) const;

  database& file_;
  log_request expected_;  // what is read ahead
  std::future<std::vector<log_message>> ahead_;
};

}  // namespace settle::inline v0::sqlite
