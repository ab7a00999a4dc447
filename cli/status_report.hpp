// What `settle status` shows, read in one snapshot per store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "settle/database.hpp"

namespace settle::cli {

struct blocked_share {
  std::int64_t share = 0;
  std::int64_t waiting = 0;
  std::int64_t failures = 0;  // attempts since it last moved
  std::string last_error;
};

struct consumer_status {
  std::string consumer;
  std::int64_t records = 0;       // of deduplication
  std::int64_t parked = 0;        // messages that wait for another try, or behind one
  std::int64_t dead_letters = 0;  // not replayed yet
};

struct service_status {
  std::string file;  // or the server's name
  dialect speaks = dialect::sqlite;
  std::int64_t pending = 0;
  std::int64_t delayed = 0;  // until their deliver_at; not counted as pending
  std::int64_t failed = 0;   // given up
  std::optional<std::int64_t>
      published;                 // a server does not count them: numbers that were rolled back are gone
  bool cluster_changed = false;  // then nobody can tell what is pending
  std::optional<duration> oldest_pending_age;
  std::vector<blocked_share> blocked;
  std::int64_t relays_alive = 0;
  std::int64_t shares_owned = 0;
  std::vector<consumer_status> consumers;
};

struct topic_status {
  std::string name;
  std::int64_t messages = 0;
  std::int64_t partitions = 0;
};

struct group_status {
  std::string name;
  std::string topic;
  std::int64_t lag = 0;  // messages not acknowledged
  std::int64_t members_alive = 0;
};

struct broker_status {
  std::string file;
  std::int64_t bytes = 0;  // that its content takes
  std::vector<topic_status> topics;
  std::vector<group_status> groups;
};

service_status read_service_status(database& service);
broker_status read_broker_status(database& broker);

// Events committed so far; of those up to `upto`, how many are not published and how many were given up;
// shares that fail.
std::int64_t read_outbox_total(database& service);
std::int64_t count_waiting(database& service, std::int64_t upto);
std::int64_t count_failed(database& service, std::int64_t upto);
std::vector<blocked_share> read_blocked(database& service);

std::string status_text(const service_status& service, const broker_status& broker);
std::string status_json(const service_status& service, const broker_status& broker);

}  // namespace settle::cli
