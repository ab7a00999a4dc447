// One record of the log as one line: `time level event name=value …`.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "settle/environment.hpp"

namespace settle::inline v0 {

using log_fields = std::span<const log_field>;

std::string log_line(timestamp at, log_level level, std::string_view event, log_fields fields);

// To standard error, in one call, so that lines of several threads and processes do not mix.
void write_log_line(log_level level, std::string_view event, log_fields fields) noexcept;

// The same for fields in braces.
inline std::string log_line(timestamp at, log_level level, std::string_view event,
                            std::initializer_list<log_field> fields) {
  return log_line(at, level, event, log_fields(fields.begin(), fields.size()));
}
inline void write_log_line(log_level level, std::string_view event,
                           std::initializer_list<log_field> fields) noexcept {
  write_log_line(level, event, log_fields(fields.begin(), fields.size()));
}

}  // namespace settle::inline v0
