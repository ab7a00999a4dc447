// Where to listen: a numeric address and a port. Names are not looked up, because what they mean can change;
// but localhost means 127.0.0.1 everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace settle::config {

struct address {
  std::string host;  // without brackets
  std::uint16_t port = 0;
  bool is_loopback = false;
};

// "127.0.0.1:8600", "[::1]:8600" or "localhost:8600"; nothing else.
std::optional<address> parse_address(std::string_view text);

// The same form again.
std::string to_text(const address& of);

}  // namespace settle::config
