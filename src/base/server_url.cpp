#include "base/server_url.hpp"

#include <fmt/format.h>

#include <charconv>

#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

constexpr int port_max = 65535;

}  // namespace

void url_reader::refuse(std::string_view why) const {
  throw error(errc::invalid_argument, fmt::format("not a URL like {}: {}", example_, why));
}

int url_reader::number(std::string_view digits, int max, std::string_view what) const {
  int read = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), read);
  if (failed != std::errc{} || end != digits.data() + digits.size() || read < 0 || read > max)
    refuse(fmt::format("the {} is not a number up to {}", what, max));
  return read;
}

std::string url_reader::decoded(std::string_view text) const {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || failed != std::errc{} || end != digits.data() + 2)
      refuse("a % without two hexadecimal digits");
    bytes += static_cast<char>(byte);
    i += 2;
  }
  return bytes;
}

void url_reader::read_host(std::string_view text, server_url& into) const {
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) refuse("a [ without its ]");
    into.host = text.substr(1, end - 1);
    const auto behind = text.substr(end + 1);
    if (!behind.empty() && behind[0] != ':') refuse("something between ] and the port");
    if (!behind.empty()) port = behind.substr(1);
  } else {
    const auto colon = text.find(':');
    into.host = decoded(text.substr(0, colon));
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
  }
  if (port) into.port = number(*port, port_max, "port");
}

server_url url_reader::read(std::string_view behind_scheme) const {
  server_url found;
  auto left = behind_scheme;
  if (const auto at = left.rfind('@'); at != std::string_view::npos) {
    const auto who = left.substr(0, at);
    const auto colon = who.find(':');
    found.user = decoded(who.substr(0, colon));
    if (colon != std::string_view::npos) found.password = decoded(who.substr(colon + 1));
    left.remove_prefix(at + 1);
  }
  const auto slash = left.find('/');
  read_host(left.substr(0, slash), found);
  if (slash != std::string_view::npos) found.rest = left.substr(slash + 1);
  return found;
}

}  // namespace settle::inline v0
