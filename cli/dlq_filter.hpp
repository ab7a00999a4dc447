// Which dead letters a command means: the options that list and replay share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "settle/dead_letter.hpp"

namespace CLI {
class App;
}

namespace settle::cli {

struct letter_options {
  std::vector<std::int64_t> ids;
  std::string consumer, topic, type, key, event, reason, since, until;
  std::string status = "NEW";

  // True if nothing but the status narrows it down.
  bool empty() const;

  // Throws a failure for what is no reason, no status or no time.
  dead_letter_filter filter(timestamp now) const;
};

void add_letter_options(CLI::App& to, letter_options& into, const char* status_help);

// A time (2026-01-31T12:00:00Z), a day (2026-01-31), or how long ago (90s, 15m, 2h, 3d). Throws a failure.
timestamp time_from(std::string_view option, std::string_view text, timestamp now);

}  // namespace settle::cli
