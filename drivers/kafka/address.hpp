// A kafka:// URL, taken apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace settle::inline v0::kafka {

struct address {
  bool tls = false;
  std::vector<std::string> servers;  // host:port, an IPv6 address in brackets; at least one
  std::string user = {};             // empty: none
  std::string password = {};

  std::string list() const;  // of the servers, with commas
  std::string name() const;  // for people, without user and password
  friend bool operator==(const address&, const address&) = default;
};

// Throws invalid_argument; the message has no password.
address parse_url(std::string_view url);

}  // namespace settle::inline v0::kafka
