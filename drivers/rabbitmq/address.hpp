// An amqp:// URL, taken apart.
#pragma once

#include <string>
#include <string_view>

namespace settle::inline v0::rabbitmq {

struct address {
  bool tls = false;
  std::string host = "127.0.0.1";
  int port = 5672;
  std::string user = "guest";
  std::string password = "guest";
  std::string vhost = "/";

  std::string name() const;  // without user and password
  friend bool operator==(const address&, const address&) = default;
};

// Throws invalid_argument; the message has no password.
address parse_url(std::string_view url);

}  // namespace settle::inline v0::rabbitmq
