// The running daemon: the service's database, the embedded broker, the relay between them and the HTTP
// server, put together.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/address.hpp"
#include "daemon/configuration.hpp"
#include "daemon/data_folder.hpp"
#include "daemon/prepared_service.hpp"
#include "daemon/watched_service.hpp"
#include "settle/http_server.hpp"
#include "settle/metrics.hpp"
#include "settle/relay.hpp"
#include "settle/service.hpp"

namespace settle::daemon {

class app {
 public:
  // Locks the folder and listens; then opens and migrates the stores and starts the relay. Throws
  // startup_error or settle::error, but not because a server is away: then the relay's thread tries until it
  // is back.
  app(const configuration& config, log_sink& log);

  // Stops fetching and lets the batch and the requests under way finish, at most drain_timeout; then cancels
  // them.
  void stop(std::string_view why);

 private:
  http::router routes();
  void start_http();
  address listening_on() const;
  void open_stores();
  void open_service();
  void open_broker();
  void prepare_schema();
  bool is_prepared();
  void start_relay();
  void announce_ready();

  http::response readiness();
  http::response metrics_page();
  std::vector<std::string> reasons_not_ready();
  std::string unanswered_by(database& store, bool is_broker) const;

  configuration config_;
  metrics counters_;
  environment env_;
  timestamp started_;
  folder_lock lock_;
  std::atomic<bool> opened_ = false;  // the stores below are there; set after them, read before them
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<database> service_;
  std::unique_ptr<database> service_view_;  // the same database, for what HTTP asks: it does not wait as long
  std::unique_ptr<broker> broker_;
  std::unique_ptr<database> broker_file_;  // the same file, for reading
  std::unique_ptr<relay> relay_;
  std::unique_ptr<prepared_service> prepared_;
  std::unique_ptr<watched_service> watched_;
  std::unique_ptr<http::server> http_;  // after what its routes ask, so that it ends before it
  std::unique_ptr<background> loop_;
};

}  // namespace settle::daemon
