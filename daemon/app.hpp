// The running daemon: the service's database, the embedded broker, the relay between them, webhooks, the
// sweeper and the HTTP server, put together.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/growing_log.hpp"
#include "compose/redis.hpp"
#include "compose/service_database.hpp"
#include "daemon/config/address.hpp"
#include "daemon/config/configuration.hpp"
#include "daemon/data_folder.hpp"
#include "daemon/services/running_service.hpp"
#include "daemon/services/webhooks.hpp"
#include "settle/claims.hpp"
#include "settle/http_server.hpp"
#include "settle/metrics.hpp"

namespace settle::daemon {

class app {
 public:
  // Locks the folder and listens; then opens and migrates the stores and starts the services. Throws
  // startup_error or settle::error, but not because a server is away: then the services' threads try until it
  // is back.
  app(const configuration& config, log_sink& log);

  // Lets the rounds of the services and the requests under way finish, at most drain_timeout together; then
  // cancels them.
  void stop(std::string_view why);

 private:
  http::router routes();
  void start_http();
  address listening_on() const;
  void open_stores();
  void open_service();
  compose::database_options view_options() const;
  void require_own_sessions() const;
  void open_keys();
  void check_redis();
  void open_broker();
  void prepare_schema();
  void prepare_once();
  void try_to_prepare();
  void make_services();
  void start_services();
  void stop_services(timestamp until);
  void announce_ready();

  http::response readiness();
  http::response metrics_page();
  std::vector<std::string> reasons_not_ready();
  std::string unanswered_by(database& store, bool is_broker) const;
  std::string unanswered_by_redis() const;
  std::string unanswered(const std::string& store, const std::exception& e) const;
  std::string pooled() const;
  // A trouble that lasts is written less and less often. True: now.
  bool is_news(const std::string& trouble) const;
  void is_over(const std::string& trouble) const;

  configuration config_;
  webhooks webhooks_;
  metrics counters_;
  environment env_;
  timestamp started_;
  folder_lock lock_;
  std::atomic<bool> opened_ = false;  // the stores below are there; set after them, read before them
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<database> service_;
  std::unique_ptr<database> service_view_;  // the same database, for what HTTP asks: it does not wait as long
  std::unique_ptr<redis::client> redis_;    // none: keys are in the service's database
  std::unique_ptr<claims> keys_;
  std::unique_ptr<broker> broker_;
  std::unique_ptr<database> broker_file_;  // the same file, for reading
  std::mutex preparing_;
  std::atomic<bool> prepared_ = false;  // the service's database has the tables that this build needs
  mutable std::mutex troubles_mutex_;
  mutable std::map<std::string, growing_log> troubles_;
  mutable std::mutex pooler_mutex_;
  mutable timestamp pooler_seen_{};   // when it was last looked for
  mutable std::string pooler_found_;  // what is to be said about it; empty: nothing
  std::vector<std::unique_ptr<running_service>> services_;
  std::vector<const running_service*> needed_;  // those of them without which it is not ready
  std::unique_ptr<http::server> http_;          // after what its routes ask, so that it ends before it
};

}  // namespace settle::daemon
