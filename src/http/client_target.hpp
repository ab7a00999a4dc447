// Where a request goes to, as its URL says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace settle::inline v0::http {

struct client_target {
  bool tls = false;
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  std::string authority;       // for Host: as it was written
  std::string path;            // with the query
  std::string origin() const;  // what connections are kept for: "https://bank.example:443"
};

// Throws invalid_argument; what is quoted has neither path nor query.
client_target read_target(std::string_view url);

}  // namespace settle::inline v0::http
