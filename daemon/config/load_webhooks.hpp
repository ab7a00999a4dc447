// The tables [webhook.NAME] of a file: one source of webhooks each.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "daemon/config/toml_file.hpp"
#include "daemon/config/webhook_settings.hpp"

namespace settle::daemon {

struct webhooks_input {
  std::string file;                             // for "settled.toml:7"
  std::span<const toml_entry> entries;          // those of webhook.*
  const std::vector<std::string>& environment;  // NAME=value, where keys may be
};

struct loaded_webhooks {
  std::vector<webhook_settings> sources;                    // by name
  std::map<std::string, std::string, std::less<>> origins;  // "webhook.stripe.topic" → "settled.toml:7"
  std::vector<std::string> problems;                        // no source is usable then
};

// Keys are read and everything is tried: what has no problem here works later. No problem quotes a key, or
// what may be one at a wrong place.
loaded_webhooks load_webhooks(const webhooks_input& from);

// What follows in --print-config.
std::string print_webhooks(std::span<const webhook_settings> sources,
                           const std::map<std::string, std::string, std::less<>>& origins);

}  // namespace settle::daemon
