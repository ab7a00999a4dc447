// What settled is told. A setting is declared once, by its row in option_table.cpp: its name, the field here
// that it sets, what it may be and what it means. File, environment, flags, --print-config and the reference
// page come from that row. The fields are the options of whoever uses them, with the defaults that they have
// there, so nothing has to be copied from here to there.
#pragma once

#include <string>
#include <vector>

#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "daemon/config/webhook_settings.hpp"
#include "daemon/services/sweeping.hpp"
#include "settle/environment.hpp"
#include "settle/http_server.hpp"
#include "settle/relay.hpp"

namespace settle::daemon {

// Nobody sends settled large requests but providers of webhooks, which have limits of their own.
inline http::server_options http_defaults() {
  http::server_options made;
  made.header_bytes_max = 8 * 1024;
  made.body_bytes_max = 16 * 1024;
  made.connections_max = 256;
  return made;
}

struct configuration {
  std::string data = "settle-data";
  std::string database = {};  // empty: settle.db in the data folder
  bool migrate = true;
  std::string listen = "127.0.0.1:8600";
  log_level log = log_level::info;
  duration drain_timeout = std::chrono::seconds(10);
  duration busy_timeout = compose::database_options{}.busy_timeout;

  relay_options relay = {};
  compose::broker_options broker = {};
  std::string keys_redis = {};  // empty: keys are in the service's database
  sweeping_options sweep = {};
  http::server_options http = http_defaults();
  duration http_timeout = std::chrono::seconds(10);

  std::vector<webhook_settings> webhooks = {};  // tables [webhook.NAME], which only a file can have
};

}  // namespace settle::daemon
