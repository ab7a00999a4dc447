// A server with a few routes, on a free port, with a log that is kept.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "settle/http_server.hpp"
#include "settle/metrics.hpp"
#include "support/quiet_log.hpp"
#include "support/raw_http.hpp"

namespace settle::test {

// A door that handlers wait at until a test opens it.
class gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait_for(int arrivals) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return arrived_ >= arrivals; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

class http_world : public testing::Test {
 protected:
  ~http_world() override { gate_.open(); }

  void start(http::server_options options = {}) {
    options.env.log = &log_;
    options.env.counters = &counters_;
    server_.emplace(routes(), options);
  }

  raw_http connect() const { return raw_http(server_->port()); }

  static std::string shown(const http::request& asked) {
    return asked.method + " " + asked.path + " [" + asked.body + "]";
  }

  http::router routes() {
    http::router made;
    const auto echo = [](const http::request& asked) { return http::text(200, "text/plain", shown(asked)); };
    made.get("/quick", echo, {.quick = true}).post("/quick", echo, {.quick = true});
    made.get("/slow", echo).post("/slow", echo).post("/small", echo, {.body_bytes_max = 10});
    made.get("/big",
             [](const http::request&) { return http::text(200, "text/plain", std::string(4 << 20, 'b')); },
             {.quick = true});
    made.get("/gate", [this](const http::request& asked) {
      gate_.pass();
      handled_ += asked.cancelled.stop_requested() ? 100 : 1;
      return http::text(200, "text/plain", "passed");
    });
    made.get("/trace/{id}", [](const http::request& asked) {
      return http::text(
          200, "text/plain",
          std::string(asked.parameter("id")) + " " + asked.trace.traceparent + " " + asked.remote_address);
    });
    made.get("/split",
             [](const http::request&) { return http::response{200, {{"X", "a\r\nEvil: 1"}}, "x"}; });
    made.get("/close",
             [](const http::request&) { return http::response{200, {{"Connection", "close"}}, "x"}; },
             {.quick = true});
    made.get("/empty", [](const http::request&) { return http::response{204, {}, ""}; }, {.quick = true});
    made.get("/throws", [](const http::request&) -> http::response { throw std::runtime_error("secret"); });
    return made;
  }

  // That the server is alive and well, on a connection of its own.
  void expect_good_service() {
    auto good = connect();
    const auto answer = good.ask(get_of("/quick"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "GET /quick []");
    EXPECT_EQ(good.ask(post_of("/slow", "abc")).body, "POST /slow [abc]");
  }

  std::int64_t refused_for(std::string_view reason, std::int64_t at_least = 1) {
    return eventually_counted("settle_http_refused_requests_total", {{"reason", reason}}, at_least);
  }

  static bool eventually(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return holds();
  }

  // Counts are added a moment later.
  std::int64_t eventually_counted(std::string_view name, metrics::labels with, std::int64_t at_least = 1) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (counters_.value(name, with) < at_least && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return counters_.value(name, with);
  }

  quiet_log log_;
  metrics counters_;
  gate gate_;
  std::atomic<int> handled_ = 0;
  std::optional<http::server> server_;
};

}  // namespace settle::test
