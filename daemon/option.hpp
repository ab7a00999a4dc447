// One row per setting: its name, its field, what it may be, and why one would change it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "daemon/configuration.hpp"

namespace settle::daemon {

enum class kind { text, address, store, level, flag, count, bytes, time };

// In the unit of the field: microseconds, bytes, or whatever is counted. For text: its length in bytes.
struct bounds {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

struct option {
  using field = std::variant<std::string configuration::*, std::int64_t configuration::*,
                             duration configuration::*, log_level configuration::*, bool configuration::*>;

  std::string_view name;  // "relay.batch_max": batch_max in the file's section [relay]
  kind type;
  field where;
  bounds allowed;
  std::string_view unit;     // what a count counts: "events"
  std::string_view meaning;  // for the reference page and for --help; the first sentence stands alone
  bool secret = false;       // never shown: not by --print-config, not in an error
};

std::span<const option> all_options();
const option* find_option(std::string_view name);

// Derived from the name, so that they cannot differ from it: SETTLE_RELAY_BATCH_MAX, --relay-batch-max.
std::string environment_of(const option& of);
std::string flag_of(const option& of);

// Why a text cannot be the value of this option, in words that follow "relay.batch_max "; or nothing, and
// then the configuration has it.
std::optional<std::string> assign(configuration& to, const option& what, std::string_view text);

// The value as a file would have it, without quotes: 500, 4MiB, 10s. A secret gives "(hidden)", a store is
// shown without its password.
std::string shown(const configuration& from, const option& what);

// Whether a file writes the value in quotes.
bool is_quoted(const option& what);

// "1 to 10,000 events", "50ms to 1h"
std::string allowed_text(const option& of);

}  // namespace settle::daemon
