// The running daemon: its services, the brokers between them and the HTTP server, put together.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "config/address.hpp"
#include "config/load.hpp"
#include "daemon/api/metrics_text.hpp"
#include "daemon/data_folder.hpp"
#include "daemon/log.hpp"
#include "daemon/services/served_broker.hpp"
#include "daemon/services/served_service.hpp"
#include "settle/http_server.hpp"
#include "settle/metrics.hpp"

namespace settle::daemon {

class app {
 public:
  // Locks the folder, listens and starts the services. The one of the short form is opened first: throws
  // startup_error or settle::error if its stores cannot be had, but not because a server is away. Services
  // with names have to answer for themselves: one that cannot be opened is not ready, and is tried again.
  app(const config::configuration& settings, line_log& log);

  // Goes on by another configuration. Services and brokers that are told the same as before notice nothing.
  // What was under way elsewhere is finished. Throws, and changes nothing, if the new ones cannot be made.
  void reload(const config::configuration& next);

  // Lets the rounds of the services and the requests under way finish, at most drain_timeout together; then
  // cancels them.
  void stop(std::string_view why);

 private:
  using services = std::vector<std::shared_ptr<served_service>>;

  // All that a configuration makes; those of the running one are taken where they are the same.
  struct cast {
    broker_map brokers;
    services all;
  };
  cast make_cast(const config::configuration& from);
  std::shared_ptr<served_service> make_service(const config::service_settings& of, const broker_map& brokers);
  std::shared_ptr<served_service> kept_service(const config::service_settings& of, const broker_map& brokers);
  cast current();

  http::router routes_of(const services& all);
  void start_http(const services& all);
  void say_started();
  void announce_ready(const std::string& service);
  void let_go(services leaving);

  http::response readiness(const http::request& asked);
  http::response metrics_page();

  config::configuration settings_;  // of the thread that reloads; others ask for nothing of it
  line_log& log_;
  metrics counters_;
  environment env_;
  timestamp started_;
  folder_lock lock_;
  std::atomic<bool> stopping_ = false;
  std::map<std::string, std::shared_ptr<metrics>> service_counters_;  // they survive a reload
  std::mutex cast_mutex_;
  cast cast_;
  // Services that a reload has ended, on their way out.
  struct departure {
    std::atomic<bool> over = false;
    std::jthread thread;
  };
  std::vector<std::unique_ptr<departure>> leaving_;
  config::address listens_at_;
  std::unique_ptr<http::server> http_;  // after what its routes ask, so that it ends before it
};

}  // namespace settle::daemon
