// What programs are told: the daemon itself, the services that it serves and the brokers between them. A
// setting is declared once, by its row in one of the tables *_option_table.cpp: its name, the field here that
// it sets, what it may be and what it means. File, environment, flags, --print-config and the reference page
// come from that row. The fields are the options of whoever uses them, with the defaults that they have
// there, so nothing has to be copied from here to there.
//
// Most files have many services, each in a table [service.NAME]. The short form has none: its settings stand
// at the top, and are those of one service without a name.
#pragma once

#include <string>
#include <vector>

#include "broker/routing.hpp"
#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "config/webhook_settings.hpp"
#include "settle/environment.hpp"
#include "settle/http_server.hpp"
#include "settle/relay.hpp"

namespace settle::config {

// Most tables [service.NAME] and [broker.NAME] of a file: each service has threads and connections of its
// own.
constexpr std::size_t services_max = 200;
constexpr std::size_t brokers_max = 50;
constexpr std::size_t routes_max = 200;     // of one service: each event is compared with them in turn
constexpr std::size_t exchanges_max = 200;  // of one broker, likewise

// How what is over is removed from a service's database.
struct sweep_settings {
  // From the end of one sweep to the next.
  duration interval = std::chrono::minutes(1);
  // How long webhooks that are over stay in the journal.
  duration webhook_keep = std::chrono::days(30);
  // Rows of each kind per slice, and the pause between two slices: at most 5,000 rows a second.
  std::int64_t slice_max = 500;
  duration slice_pause = std::chrono::milliseconds(100);
};

struct broker_settings {
  std::string name = {};  // of its table; empty: the embedded broker of the data folder
  std::string url = {};   // a file
  compose::broker_options options = {};
};

struct service_settings {
  std::string name = {};      // of its table; empty: the one service of the short form
  std::string database = {};  // a file or a connection string, which may hold a password
  std::string broker = {};    // the name of one
  bool migrate = true;
  duration busy_timeout = compose::database_options{}.busy_timeout;
  relay_options relay = {};
  std::string keys_redis = {};  // empty: keys are in the service's database
  sweep_settings sweep = {};
  std::vector<webhook_settings> webhooks = {};  // tables [webhook.NAME], which only a file can have
  std::vector<topic_route> routes = {};         // likewise, in the order of the file
};

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
  std::string listen = "127.0.0.1:8600";
  log_level log = log_level::info;
  duration drain_timeout = std::chrono::seconds(10);
  http::server_options http = http_defaults();
  duration http_timeout = std::chrono::seconds(10);

  // What stands at the top: the service and the broker of the short form, or what holds for those whose own
  // tables say nothing else.
  service_settings service = {};
  broker_settings broker = {};

  // Complete, sorted by name, never empty once a configuration is loaded.
  std::vector<service_settings> services = {};
  std::vector<broker_settings> brokers = {};

  bool is_short() const { return services.size() == 1 && services.front().name.empty(); }
  // Null: there is none of this name.
  const service_settings* find_service(std::string_view name) const;
  const broker_settings* find_broker(std::string_view name) const;
};

}  // namespace settle::config
