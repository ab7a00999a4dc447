#include "config/address.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace settle::config {
namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, port);
  if (failed != std::errc() || rest != end) return std::nullopt;
  return port;
}

}  // namespace

std::optional<address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return std::nullopt;
  auto host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  address found{std::string(host), *port};
  in_addr v4{};
  in6_addr v6{};
  if (!bracketed && inet_pton(AF_INET, found.host.c_str(), &v4) == 1) {
    found.is_loopback = (ntohl(v4.s_addr) >> 24) == 127;
    return found;
  }
  if (bracketed && inet_pton(AF_INET6, found.host.c_str(), &v6) == 1) {
    found.is_loopback = IN6_IS_ADDR_LOOPBACK(&v6) != 0;
    return found;
  }
  return std::nullopt;
}

std::string to_text(const address& of) {
  const bool v6 = of.host.find(':') != std::string::npos;
  return (v6 ? "[" + of.host + "]" : of.host) + ":" + std::to_string(of.port);
}

}  // namespace settle::config
