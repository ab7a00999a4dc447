#include "base/log_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/time_text.hpp"

namespace settle::inline v0 {
namespace {

// Foreign text cannot end a line or begin a field of its own, and cannot control a terminal.
std::string quoted(std::string_view value) {
  bool plain = !value.empty();
  std::string out;
  for (const char c : value) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (c == ' ' || c == '=' || c == '"' || c == '\\' || control) plain = false;
    if (c == '"' || c == '\\') out += '\\';
    out += control ? ' ' : c;
  }
  return plain ? out : '"' + out + '"';
}

}  // namespace

std::string log_line(timestamp at, log_level level, std::string_view event, log_fields fields) {
  auto line = to_rfc3339(at);
  line.append(" ").append(to_string(level)).append(" ").append(event);
  for (const auto& field : fields)
    line.append(" ").append(field.name).append("=").append(quoted(field.value));
  return line += '\n';
}

// Without memory for the line, its event alone has to do.
void write_log_line(log_level level, std::string_view event, log_fields fields) noexcept {
  constexpr std::string_view short_of_memory = "settle: out of memory for a line of the log: ";
  try {
    const auto line = log_line(system_time().now(), level, event, fields);
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (...) {
    std::array<char, 128> line;
    const auto room = line.size() - short_of_memory.size() - 1;
    auto* end = std::ranges::copy(short_of_memory, line.begin()).out;
    end = std::ranges::copy(event.substr(0, room), end).out;
    *end++ = '\n';
    [[maybe_unused]] const auto ignored =
        ::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(end - line.data()));
  }
}

}  // namespace settle::inline v0
