// The tables [service.NAME] and [broker.NAME] of a file, and what becomes of a file without them.
#pragma once

#include <span>
#include <string>

#include "config/configuration.hpp"
#include "config/reading.hpp"

namespace settle::config {

// The entries of a file, by whom they are about.
struct sorted_entries {
  std::vector<toml_entry> top = {};       // settings of the whole file
  std::vector<toml_entry> services = {};  // below service.
  std::vector<toml_entry> brokers = {};   // below broker.NAME.
  std::vector<toml_entry> webhooks = {};  // below webhook.
  std::vector<toml_entry> routes = {};    // below route.
};
sorted_entries sort_entries(std::vector<toml_entry> all);

// Fills services and brokers of a configuration whose own settings are complete.
void load_services(reading& all, const sorted_entries& from, configuration& to);

// What follows in --print-config: nothing for the short form but its webhooks and routes.
std::string print_services(const configuration& of, const origin_map& origins);

}  // namespace settle::config
