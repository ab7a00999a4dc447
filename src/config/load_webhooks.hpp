// The tables [webhook.NAME] of a service: one source of webhooks each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/reading.hpp"
#include "config/toml_file.hpp"
#include "config/webhook_settings.hpp"

namespace settle::config {

// The sources of one service. `prefix` is "webhook." or "service.orders.webhook.", and the entries are those
// below it. Keys are read and everything is tried: what has no problem here works later. No problem quotes a
// key, or what may be one at a wrong place.
std::vector<webhook_settings> load_webhooks(reading& all, std::span<const toml_entry> entries,
                                            std::string_view prefix);

// What follows in --print-config.
std::string print_webhooks(std::span<const webhook_settings> sources, std::string_view prefix,
                           const origin_map& origins);

}  // namespace settle::config
