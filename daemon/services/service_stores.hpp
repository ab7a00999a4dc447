// The stores of one service: its database, twice, because HTTP does not wait as long as background work; and
// where its idempotency keys are.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compose/redis.hpp"
#include "compose/service_database.hpp"
#include "config/configuration.hpp"
#include "daemon/services/troubles.hpp"
#include "settle/claims.hpp"
#include "settle/database.hpp"

namespace settle::daemon {

// What HTTP asks of a store may take so long, and be asked by so many at once.
struct http_limits {
  duration timeout = std::chrono::seconds(10);
  std::size_t workers = 8;
};

class service_stores {
 public:
  // Opens them. Throws startup_error or settle::error, but not because a server is away. The settings outlive
  // it.
  service_stores(const config::service_settings& of, const http_limits& limits, const environment& env);

  database& own() { return *own_; }
  database& view() { return *view_; }
  claims& keys() { return *keys_; }

  // Makes the tables, or checks them. Done once, whoever asks; throws while it cannot be done.
  void prepare();
  bool is_prepared() const { return prepared_; }

  std::vector<std::string> reasons_not_ready();

 private:
  compose::database_options view_options() const;
  void try_to_prepare();
  void prepare_schema();
  void require_own_sessions() const;
  void open_keys();
  void check_redis();
  std::string pooled();
  std::string unanswered_by_redis();

  const config::service_settings& settings_;
  http_limits limits_;
  environment env_;
  troubles troubles_;
  std::unique_ptr<database> own_;
  std::unique_ptr<database> view_;
  std::unique_ptr<redis::client> redis_;  // none: keys are in the service's database
  std::unique_ptr<claims> keys_;
  std::mutex preparing_;
  std::atomic<bool> prepared_ = false;  // the database has the tables that this build needs
  std::mutex pooler_mutex_;
  timestamp pooler_seen_{};   // when it was last looked for
  std::string pooler_found_;  // what is to be said about it; empty: nothing
};

}  // namespace settle::daemon
