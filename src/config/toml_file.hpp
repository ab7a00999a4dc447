// A TOML file as a flat list of dotted keys with their lines.
#pragma once

#include <string>
#include <vector>

namespace settle::config {

struct toml_entry {
  std::string key;  // "relay.batch_max"; in the second table [[route]]: "route.1.topic"
  std::string text;
  bool is_text = false;  // a string in the file; otherwise a whole number
  std::size_t line = 0;
  bool is_table = false;  // an empty one; others are there with what they hold
};

// Adds what it cannot read to `problems`, as "settled.toml:3: …". A file that cannot be read at all gives
// no entries.
std::vector<toml_entry> read_toml_file(const std::string& path, std::vector<std::string>& problems);

}  // namespace settle::config
