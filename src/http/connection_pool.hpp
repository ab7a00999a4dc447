// Connections that are kept between requests, and how many there may be.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/client_line.hpp"

namespace settle::inline v0::http {

struct pool_limits {
  std::size_t per_origin_max;
  std::size_t total_max;
  duration idle_time_max;
};

class connection_pool {
 public:
  explicit connection_pool(const pool_limits& limits) : limits_(limits) {}

  // The right to one connection, and the connection if one was kept.
  class lease {
   public:
    lease() = default;
    lease(connection_pool& of, std::string origin, std::unique_ptr<client_line> line)
        : of_(&of), origin_(std::move(origin)), line(std::move(line)) {}
    lease(lease&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)),
          origin_(std::move(other.origin_)),
          line(std::move(other.line)) {}
    lease& operator=(lease&&) = delete;
    ~lease() {
      if (of_ != nullptr) of_->give_back(origin_, keep ? std::move(line) : nullptr);
    }
    explicit operator bool() const { return of_ != nullptr; }

   private:
    connection_pool* of_ = nullptr;
    std::string origin_;

   public:
    std::unique_ptr<client_line> line;
    bool keep = false;  // whether another request may go into it
  };

  // Waits for one; none: time or patience was over.
  lease take(const std::string& origin, const time_limit& limit);

  std::size_t open() const;
  void close_idle();

 private:
  struct idle_line {
    std::unique_ptr<client_line> line;
    steady::time_point since;
  };
  struct lines {
    std::size_t in_use = 0;
    std::size_t wanted = 0;            // by those who wait
    std::vector<idle_line> idle = {};  // the last one was used last
  };
  using closing = std::vector<std::unique_ptr<client_line>>;

  void give_back(const std::string& origin, std::unique_ptr<client_line> line);
  bool may_open(lines& of, closing& closed);
  void drop_old(lines& of, closing& closed);
  void forget_unused(const std::string& origin);

  const pool_limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable_any freed_;
  std::map<std::string, lines> origins_;
  std::size_t open_ = 0;  // in use and idle, of all
};

}  // namespace settle::inline v0::http
