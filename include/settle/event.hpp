// An event as it is published: where it goes, what it is about, and its bytes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// Attributes that travel with a message beside its payload, by name.
using attributes = std::map<std::string, std::string, std::less<>>;

struct event {
  std::string topic;  // where it goes; 1–255 bytes
  std::string type;   // what happened, e.g. "order.placed"; 1–255 bytes
  std::string key;  // the aggregate's id: events of one key keep their order. Empty: no order; ≤ 1,024 bytes
  std::string aggregate_type = {};  // e.g. "order"; may be empty; ≤ 255 bytes
  std::string payload = {};         // opaque bytes; ≤ payload_bytes_max
  std::string content_type = "application/json";
  attributes headers = {};  // extra attributes: lower-case letters and digits, values printable
};

// Bounds of what may be published. Names are UTF-8 without control characters.
struct event_limits {
  static constexpr std::size_t name_bytes_max = 255;
  static constexpr std::size_t key_bytes_max = 1024;
  static constexpr std::size_t headers_max = 64;
  static constexpr std::size_t header_bytes_max = 8192;
  static constexpr std::size_t payload_bytes_max_default = 1024 * 1024;
};

}  // namespace settle

#pragma GCC visibility pop
