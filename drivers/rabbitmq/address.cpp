#include "rabbitmq/address.hpp"

#include <fmt/format.h>

#include "base/server_url.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

constexpr int tls_port = 5671;

}  // namespace

std::string address::name() const {
  return fmt::format("RabbitMQ {}:{}{}{}", host, port, vhost.starts_with('/') ? "" : "/", vhost);
}

address parse_url(std::string_view url) {
  const url_reader reader("amqp://user:password@host:5672/vhost");
  address found;
  found.tls = url.starts_with("amqps://");
  if (!found.tls && !url.starts_with("amqp://")) reader.refuse("it does not begin with amqp:// or amqps://");
  if (url.find('?') != std::string_view::npos) reader.refuse("settings behind a ? are not read here");
  const auto read = reader.read(url.substr(url.find("//") + 2));
  if (read.user) {
    found.user = *read.user;
    found.password = read.password.value_or("");
  }
  if (!read.host.empty()) found.host = read.host;
  if (found.tls) found.port = tls_port;
  if (read.port) found.port = *read.port;
  if (found.port == 0) reader.refuse("the port is 0");
  if (read.rest.find('/') != std::string_view::npos)
    reader.refuse("a / in the name of a virtual host is written %2f");
  if (!read.rest.empty()) found.vhost = reader.decoded(read.rest);
  return found;
}

}  // namespace settle::inline v0::rabbitmq
