// What a source finds in a request: id, type, key and time. Pure.
#pragma once

#include <optional>
#include <string>

#include "settle/webhook.hpp"

namespace settle::hooks {

using namespace settle::webhook;

// Throws invalid_name or invalid_argument for a source that cannot work.
void check_source(const source& of);

// The event that a verified request tells of; received_at is left to the caller. Nothing if it has no usable
// id, or a key that cannot be stored. `error` says why, for people. A time that nobody can read is none, and
// somebody should know.
struct reading {
  std::optional<received> what;
  std::string error;
  std::string unread_time = {};
};
reading read_event(const source& of, const request& from);

// Seconds since 1970, milliseconds since 1970 in 13 digits, or RFC 3339.
std::optional<timestamp> provider_time(std::string_view text);

}  // namespace settle::hooks
