// One record of the log as one line: `time level event name=value …`.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "settle/environment.hpp"

namespace settle::inline v0 {

std::string log_line(timestamp at, log_level level, std::string_view event,
                     std::initializer_list<log_field> fields);

// To standard error, in one call, so that lines of several threads and processes do not mix.
void write_log_line(log_level level, std::string_view event,
                    std::initializer_list<log_field> fields) noexcept;

}  // namespace settle::inline v0
