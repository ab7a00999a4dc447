// A small HTTP server: fixed routes, GET and HEAD, bounded in every direction.
//
// One thread does all I/O and answers what is quick; one more answers what asks a store, so that /healthz
// answers while a store is slow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/address.hpp"
#include "settle/environment.hpp"

namespace settle::daemon {

struct http_limits {
  std::uint32_t header_bytes_max = 0;
  std::uint64_t body_bytes_max = 0;
  duration timeout{};  // for one request to arrive, and for one answer to be taken
  std::size_t connections_max = 0;
};

struct http_response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
};

// The body that an error has (RFC 9457).
http_response problem(int status, std::string_view detail);

struct http_route {
  std::string path;
  bool asks_store = false;
  std::function<http_response()> answer;  // an exception becomes a 500
};

class http_server {
 public:
  // Listens from here on. Throws startup_error if the address cannot be had.
  http_server(const address& where, const http_limits& limits, std::vector<http_route> routes,
              const environment& env);
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  address listening_on() const;  // with the port that was chosen

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace settle::daemon
