// What waits in an outbox, since when, and who works on it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "settle/database.hpp"

namespace settle::inspect {

// No limit to the events that are counted.
constexpr auto every_event = std::numeric_limits<std::int64_t>::max();

struct waiting_share {
  std::int64_t events = 0;
  timestamp oldest{};
};

struct outbox_backlog {
  std::int64_t pending = 0;         // not published; without those that are delayed or were given up
  std::int64_t delayed = 0;         // until their deliver_at
  std::int64_t failed = 0;          // given up: the broker rejects them
  std::optional<timestamp> oldest;  // of those that are pending
  std::map<std::int64_t, waiting_share> shares;  // what relays have not passed yet, by share

  // How long the oldest has been waiting; none: nothing waits.
  std::optional<duration> oldest_age(timestamp now) const;
};

// Of the events with numbers up to `upto`.
outbox_backlog read_backlog(transaction& tx, std::int64_t upto = every_event);
outbox_backlog read_backlog(database& service, std::int64_t upto = every_event);

struct outbox_numbers {
  std::int64_t highest = 0;             // every event committed so far has a number up to here
  std::optional<std::int64_t> skipped;  // how many of them no event has; none: nobody knows
};

outbox_numbers read_numbers(transaction& tx);
outbox_numbers read_numbers(database& service);

struct blocked_share {
  std::int64_t share = 0;
  std::int64_t waiting = 0;
  std::int64_t failures = 0;  // attempts since it last moved
  std::string last_error;
};

// Shares that fail and have something to publish: one whose events have all gone is not blocked, whatever it
// failed at before.
std::vector<blocked_share> read_blocked(transaction& tx, const outbox_backlog& backlog);
std::vector<blocked_share> read_blocked(database& service);

struct relays {
  std::int64_t alive = 0;
  std::int64_t shares_owned = 0;
};

relays read_relays(transaction& tx);

}  // namespace settle::inspect
