// One source of webhooks as the file declares it, in a table [webhook.NAME]. webhook_option_table.cpp says
// what each field means; the file, --print-config and the reference page come from that table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settle/webhook.hpp"

namespace settle::daemon {

// Most tables [webhook.NAME] of a file: each is a route, and is looked after by the worker in turn.
constexpr std::size_t webhook_sources_max = 100;

struct webhook_settings {
  std::string name = {};
  std::string scheme = {};
  std::string keys_env = {};
  std::string keys_file = {};
  std::string topic = {};
  std::string event_id = {};
  std::string type = {};
  std::string key = {};
  std::string time = {};
  duration tolerance = webhook::signing{}.tolerance;
  std::string header = webhook::signing{}.header;
  std::string encoding = "hex";
  std::string prefix = webhook::signing{}.prefix;
  bool ignore_stale = false;
  bool trust_unsigned_headers = false;
  std::int64_t body_bytes_max = event_limits::payload_bytes_max_default;

  std::vector<std::string> keys = {};  // what keys_env and keys_file name; no option shows them
};

// What holds where the file says nothing: topic is the name, the places are those of the library's own source
// of this scheme.
webhook_settings webhook_defaults(std::string_view name, std::string_view scheme);

// "json:data.object.id" or "header:webhook-id"; nothing if it is neither.
std::optional<webhook::place> read_place(std::string_view text);

// For the library, keys included. What cannot work there is refused when its inbox is made.
webhook::source source_of(const webhook_settings& from);

}  // namespace settle::daemon
