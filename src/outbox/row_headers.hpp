// The headers of an outbox row, as its message carries them. Whoever wrote the row need not have gone through
// publish(): a reserved name is renamed, so that it neither passes for Settle's own nor keeps the event from
// anybody.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/broker.hpp"
#include "settle/database.hpp"

namespace settle::outbox {

struct changed_headers {
  std::string id;
  std::string topic;
  std::string changes;  // for people
};

// Adds to `changed` if something had to be changed. What cannot be read is left out: refusing it here would
// stop everything behind it. `of` has its id and topic.
attributes read_headers(std::string_view stored, const message& of, std::vector<changed_headers>& changed);

class header_check {
 public:
  explicit header_check(database& db) : db_(db) {}

  // Before they are sent. Only replays of dead letters are addressed to one consumer, so an address without
  // its letter is renamed like any reserved name. Then reports what was changed, here and in read_headers:
  // each event is counted, and each change that is new is logged.
  void finish(std::span<message> messages, std::vector<changed_headers>& changed);

 private:
  void check_addresses(std::span<message> messages, std::vector<changed_headers>& changed);

  static constexpr std::size_t told_max = 1000;

  database& db_;
  std::set<std::pair<std::string, std::string>> told_;  // topic and change
};

}  // namespace settle::outbox
