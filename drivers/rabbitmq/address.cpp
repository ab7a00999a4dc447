#include "rabbitmq/address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "settle/error.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

constexpr int port_max = 65535;
constexpr int tls_port = 5671;

error unreadable(std::string_view why) {
  return {errc::invalid_argument,
          fmt::format("not a URL like amqp://user:password@host:5672/vhost: {}", why)};
}

int port_of(std::string_view digits) {
  int read = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), read);
  if (failed != std::errc{} || end != digits.data() + digits.size() || read < 1 || read > port_max)
    throw unreadable(fmt::format("the port is not a number from 1 to {}", port_max));
  return read;
}

std::string decoded(std::string_view text) {
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
      throw unreadable("a % without two hexadecimal digits");
    bytes += static_cast<char>(byte);
    i += 2;
  }
  return bytes;
}

// Host and port.
void read_server(std::string_view text, address& into) {
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) throw unreadable("a [ without its ]");
    into.host = text.substr(1, end - 1);
    const auto rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') throw unreadable("something between ] and the port");
    if (!rest.empty()) port = rest.substr(1);
  } else {
    const auto colon = text.find(':');
    if (!text.substr(0, colon).empty()) into.host = decoded(text.substr(0, colon));
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
  }
  if (port) into.port = port_of(*port);
}

}  // namespace

std::string address::name() const {
  return fmt::format("RabbitMQ {}:{}{}{}", host, port, vhost.starts_with('/') ? "" : "/", vhost);
}

address parse_url(std::string_view url) {
  address found;
  found.tls = url.starts_with("amqps://");
  if (!found.tls && !url.starts_with("amqp://"))
    throw unreadable("it does not begin with amqp:// or amqps://");
  if (found.tls) found.port = tls_port;
  url.remove_prefix(url.find("//") + 2);
  if (url.find('?') != std::string_view::npos) throw unreadable("settings behind a ? are not read here");
  if (const auto at = url.rfind('@'); at != std::string_view::npos) {
    const auto who = url.substr(0, at);
    const auto colon = who.find(':');
    found.user = decoded(who.substr(0, colon));
    found.password = colon != std::string_view::npos ? decoded(who.substr(colon + 1)) : std::string();
    url.remove_prefix(at + 1);
  }
  const auto slash = url.find('/');
  read_server(url.substr(0, slash), found);
  if (slash != std::string_view::npos && slash + 1 < url.size()) {
    const auto vhost = url.substr(slash + 1);
    if (vhost.find('/') != std::string_view::npos)
      throw unreadable("a / in the name of a virtual host is written %2f");
    found.vhost = decoded(vhost);
  }
  return found;
}

}  // namespace settle::inline v0::rabbitmq
