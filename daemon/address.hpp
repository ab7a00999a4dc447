// Where to listen: a numeric address and a port. Names are not looked up: what they mean can change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace settle::daemon {

struct address {
  std::string host;  // without brackets
  std::uint16_t port = 0;
  bool is_loopback = false;
};

// "127.0.0.1:8600" or "[::1]:8600"; nothing else.
std::optional<address> parse_address(std::string_view text);

// The same form again.
std::string to_text(const address& of);

}  // namespace settle::daemon
