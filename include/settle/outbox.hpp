// Events that a broker has rejected for good: FAILED in the view outbox_events.
//
//   for (const auto& one : settle::failed_events(*db)) std::cerr << one.id.text() << ": " << one.last_error
//   << '\n'; settle::requeue_failed(*db);  // once the cause has been mended
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "settle/database.hpp"
#include "settle/ids.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct failed_event {
  event_id id;
  std::string topic, type, key;
  std::int64_t attempts = 0;
  std::string last_error;
  timestamp created_at{};
  timestamp failed_at{};
};

// The first ones that failed first.
std::vector<failed_event> failed_events(database& db, std::size_t at_most = 1000);

// Offers them to the broker again, with all their attempts; one event, or all that have failed. Their ids
// stay, so consumers deduplicate them as ever. What was published of their key meanwhile comes before them. A
// relay takes them up when it next renews its lease, within a few seconds. Returns how many there were.
std::int64_t requeue_failed(database& db, std::optional<event_id> only = std::nullopt);

}  // namespace settle::inline v0

#pragma GCC visibility pop
