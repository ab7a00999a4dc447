// Every setting of settled. The struct holds the values and their defaults; option_table.cpp says what each
// one means and what it may be. File, environment, flags and the reference page come from that table, so a
// new setting is one field here and one row there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "daemon/config/webhook_settings.hpp"
#include "daemon/services/sweeping.hpp"
#include "settle/environment.hpp"
#include "settle/relay.hpp"

namespace settle::daemon {

struct configuration {
  std::string data = "settle-data";
  std::string database = {};  // empty: settle.db in the data folder
  bool migrate = true;
  std::string listen = "127.0.0.1:8600";
  log_level log = log_level::info;
  duration drain_timeout = std::chrono::seconds(10);
  duration busy_timeout = compose::database_options{}.busy_timeout;

  std::int64_t relay_batch_max = static_cast<std::int64_t>(relay_options{}.batch_max);
  std::int64_t relay_batch_bytes_max = static_cast<std::int64_t>(relay_options{}.batch_bytes_max);
  duration relay_lease_ttl = relay_options{}.lease_ttl;
  duration relay_idle_poll = relay_options{}.idle_poll;
  std::string relay_source = {};
  duration relay_outbox_keep = relay_options{}.outbox_keep;
  duration relay_natural_key_keep = relay_options{}.natural_key_keep;
  std::int64_t relay_attempts_max = relay_options{}.attempts_max;
  bool relay_hold_failed_keys = relay_options{}.on_exhausted == exhausted::hold_key;

  std::int64_t broker_partitions = compose::broker_options{}.partitions;
  duration broker_lease_ttl = compose::broker_options{}.lease_ttl;
  duration broker_keep = compose::broker_options{}.keep;
  std::int64_t broker_bytes_max = compose::broker_options{}.bytes_max;

  std::string keys_redis = {};  // empty: keys are in the service's database

  duration sweep_interval = sweeping_options{}.interval;
  duration sweep_webhook_keep = sweeping_options{}.webhook_keep;

  std::int64_t http_workers = 8;
  std::int64_t http_header_bytes_max = 8 * 1024;
  std::int64_t http_body_bytes_max = 16 * 1024;
  duration http_timeout = std::chrono::seconds(10);
  std::int64_t http_connections_max = 256;

  std::vector<webhook_settings> webhooks = {};  // tables [webhook.NAME], which only a file can have
};

}  // namespace settle::daemon
