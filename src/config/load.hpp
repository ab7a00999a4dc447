// From file, environment and flags to one configuration that knows where each value came from.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "config/configuration.hpp"

namespace settle::config {

// Everything that is wrong, one problem per line.
class configuration_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct inputs {
  std::string file;                          // path of a TOML file; empty: none
  std::map<std::string, std::string> flags;  // option name → text, as given on the command line
  std::vector<std::string> environment;      // NAME=value, as the process has them
};

struct loaded {
  configuration values;
  std::map<std::string, std::string, std::less<>> origins;  // option name → "settled.toml:7", "--listen", …
  std::vector<std::string> warnings;                        // for the log
};

// A flag wins over the environment, that over the file, that over the default. Throws configuration_error
// with every problem found.
loaded load_configuration(const inputs& from);

// A TOML file with the effective values, each with a comment that says where it came from.
std::string print_configuration(const loaded& what);

}  // namespace settle::config
