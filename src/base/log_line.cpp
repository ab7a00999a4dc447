#include "base/log_line.hpp"

#include <unistd.h>

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

std::string log_line(timestamp at, log_level level, std::string_view event,
                     std::initializer_list<log_field> fields) {
  auto line = to_rfc3339(at);
  line.append(" ").append(to_string(level)).append(" ").append(event);
  for (const auto& field : fields)
    line.append(" ").append(field.name).append("=").append(quoted(field.value));
  return line += '\n';
}

void write_log_line(log_level level, std::string_view event, std::initializer_list<log_field> fields) {
  const auto line = log_line(system_time().now(), level, event, fields);
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace settle::inline v0
