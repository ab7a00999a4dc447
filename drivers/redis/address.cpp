#include "redis/address.hpp"

#include <fmt/format.h>

#include "base/server_url.hpp"

namespace settle::inline v0::redis {
namespace {

constexpr std::string_view scheme = "redis://";
constexpr int database_max = 1'000'000;

}  // namespace

std::string address::name() const { return fmt::format("redis {}:{}/{}", host, port, database); }

address parse_url(std::string_view url) {
  const url_reader reader("redis://user:password@host:6379/0");
  if (url.starts_with("rediss://")) reader.refuse("there is no TLS here; use a tunnel and redis://");
  if (!url.starts_with(scheme)) reader.refuse("it does not begin with redis://");
  const auto read = reader.read(url.substr(scheme.size()));
  address found;
  if (read.user) found.user = *read.user;
  if (read.password) found.password = *read.password;
  if (!read.host.empty()) found.host = read.host;
  if (read.port) found.port = *read.port;
  if (!read.rest.empty()) found.database = reader.number(read.rest, database_max, "database");
  return found;
}

}  // namespace settle::inline v0::redis
