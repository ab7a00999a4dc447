// A small blocking HTTP/1.1 client for loopback: the services call each other's APIs with it, and the storm's
// buyers use it. One connection, kept open; used by one thread at a time.
//
// What was not answered whole has status 0: nobody knows what became of it. Every request of the shop may be
// repeated, by its key or because a state decides, so a connection that was closed while it was idle is
// opened again by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/retry_request.hpp"

namespace shop {

struct http_call {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
};

class http_client {
 public:
  // Asked for at every connect, because a service that starts again may have another port; 0: it is not
  // there.
  using port_finder = std::function<std::uint16_t()>;

  explicit http_client(port_finder port, settle::duration timeout = std::chrono::seconds(5));
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  settle::request_answer send(const http_call& what);

  // A bad network: the request goes out, whole or only its beginning, and nobody waits for the answer.
  void send_and_hang_up(const http_call& what, bool whole);

 private:
  bool connect();
  void close();
  bool write(std::string_view bytes) const;
  settle::request_answer read_answer();
  bool read_more(std::string& into) const;

  port_finder port_;
  settle::duration timeout_;
  int socket_ = -1;
};

}  // namespace shop
