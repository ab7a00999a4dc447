#include "rabbitmq/server_check.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "rabbitmq/frames.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

std::pair<int, int> numbers_of(std::string_view version) {
  std::pair<int, int> read{0, 0};
  const auto* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, read.first);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '.')
    std::from_chars(first.ptr + 1, end, read.second);
  return read;
}

}  // namespace

server_facts read_facts(const amqp_table_t& server_properties) {
  server_facts read;
  for (int i = 0; i < server_properties.num_entries; ++i) {
    const auto& one = server_properties.entries[i];
    const auto name = as_view(one.key);
    const bool is_text = one.value.kind == AMQP_FIELD_KIND_UTF8;
    if (name == "product" && is_text) read.product = as_view(one.value.value.bytes);
    if (name == "version" && is_text) read.version = as_view(one.value.value.bytes);
    if (name != "capabilities" || one.value.kind != AMQP_FIELD_KIND_TABLE) continue;
    const auto& all = one.value.value.table;
    for (int c = 0; c < all.num_entries; ++c)
      if (all.entries[c].value.kind == AMQP_FIELD_KIND_BOOLEAN && all.entries[c].value.value.boolean != 0)
        read.capabilities.emplace(as_view(all.entries[c].key));
  }
  return read;
}

int major_version(const server_facts& of) { return numbers_of(of.version).first; }

std::string lack_of(const server_facts& server) {
  constexpr std::pair oldest{3, 10};
  if (server.product == "RabbitMQ" && numbers_of(server.version) < oldest)
    return fmt::format(
        "it is RabbitMQ {}; Settle needs {}.{} or newer, whose quorum queues keep the order of "
        "what comes back: upgrade it",
        server.version, oldest.first, oldest.second);
  for (const auto* needed :
       {"publisher_confirms", "basic.nack", "consumer_cancel_notify", "connection.blocked"})
    if (!server.capabilities.contains(needed))
      return fmt::format("it is {} {} and cannot do {}; Settle needs a RabbitMQ", server.product,
                         server.version, needed);
  return {};
}

}  // namespace settle::inline v0::rabbitmq
