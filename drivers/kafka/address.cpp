#include "kafka/address.hpp"

#include <fmt/format.h>

#include "base/server_url.hpp"

namespace settle::inline v0::kafka {
namespace {

constexpr int usual_port = 9092;

std::string read_server(const url_reader& reader, std::string_view text) {
  const auto read = reader.read(text);
  if (read.host.empty()) reader.refuse("a server has no name");
  if (read.port == 0) reader.refuse("the port is 0");
  const auto port = read.port.value_or(usual_port);
  return read.host.find(':') == std::string::npos ? fmt::format("{}:{}", read.host, port)
                                                  : fmt::format("[{}]:{}", read.host, port);
}

}  // namespace

std::string address::list() const { return fmt::format("{}", fmt::join(servers, ",")); }

std::string address::name() const { return "Kafka " + list(); }

address parse_url(std::string_view url) {
  const url_reader reader("kafka://user:password@host:9092,host:9092");
  address found;
  found.tls = url.starts_with("kafkas://");
  if (!found.tls && !url.starts_with("kafka://"))
    reader.refuse("it does not begin with kafka:// or kafkas://");
  if (url.find('?') != std::string_view::npos) reader.refuse("settings behind a ? are not read here");
  auto left = url.substr(url.find("//") + 2);
  if (const auto at = left.rfind('@'); at != std::string_view::npos) {
    const auto who = reader.read(std::string(left.substr(0, at + 1)) + "host");
    found.user = who.user.value_or("");
    found.password = who.password.value_or("");
    if (found.user.empty() || found.password.empty()) reader.refuse("a user without a password, or none");
    left.remove_prefix(at + 1);
  }
  if (left.ends_with('/')) left.remove_suffix(1);
  if (left.find('/') != std::string_view::npos) reader.refuse("something behind the servers");
  while (true) {
    const auto comma = left.find(',');
    found.servers.push_back(read_server(reader, left.substr(0, comma)));
    if (comma == std::string_view::npos) return found;
    left.remove_prefix(comma + 1);
  }
}

}  // namespace settle::inline v0::kafka
