// A bounded set of connections to one database.
//
// Who finds none free waits in order of arrival; a returned connection goes straight to the first of them.
// Idle ones are kept. One that is broken is dropped when it comes back or when it is about to be handed
// out, and whoever needs one next opens it anew: that is how a database that was away is found again.
//
// Threads: any number.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "settle/database.hpp"
#include "settle/driver/database.hpp"

namespace settle::sql {

class pool {
 public:
  struct limits {
    std::string of;  // the database's name, for errors
    int connections_max = 0;
    duration acquire_timeout{};
  };
  using opener = std::function<std::unique_ptr<connection>(const std::stop_token& cancel)>;

  // Throws invalid_argument if connections_max is not positive.
  pool(limits within, opener open);
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // Throws store_busy after acquire_timeout, cancelled, or what opening a connection throws.
  std::unique_ptr<connection> acquire(const std::stop_token& cancel);
  void release(std::unique_ptr<connection> used) noexcept;

 private:
  struct waiter;

  // All three: what is handed out is a connection, or none together with the right to open one.
  std::unique_ptr<connection> take(const std::stop_token& cancel);
  std::unique_ptr<connection> wait(std::unique_lock<std::mutex>& lock, const std::stop_token& cancel);
  void give_back(std::unique_ptr<connection> usable) noexcept;

  const limits limits_;
  const opener open_;
  std::mutex mutex_;
  std::deque<waiter*> waiting_;
  std::vector<std::unique_ptr<connection>> idle_;
  int in_use_ = 0;  // handed out or being opened
};

}  // namespace settle::sql
