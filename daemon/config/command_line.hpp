// The arguments of settled.
#pragma once

#include <optional>
#include <string>

#include "config/load.hpp"

namespace settle::daemon {

struct command_line {
  config::inputs given;
  bool print_config = false;
  std::optional<std::string> print;  // what to print instead of running: help, version, a reference page
};

// Throws config::configuration_error if they make no sense.
command_line parse_command_line(int argc, char** argv, char** environment);

}  // namespace settle::daemon
