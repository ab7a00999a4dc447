// A redis:// URL, taken apart.
#pragma once

#include <string>
#include <string_view>

namespace settle::inline v0::redis {

struct address {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string user = {};
  std::string password = {};
  int database = 0;

  std::string name() const;  // without user and password
  friend bool operator==(const address&, const address&) = default;
};

// Throws invalid_argument; the message has no password.
address parse_url(std::string_view url);

}  // namespace settle::inline v0::redis
