#include "daemon/log.hpp"

#include <unistd.h>

#include "base/time_text.hpp"

namespace settle::daemon {
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

// Written in one call, so that lines of several threads do not mix.
void line_log::write(log_level level, std::string_view event, std::initializer_list<log_field> fields) {
  if (!enabled(level)) return;
  std::string line = to_rfc3339(system_time().now());
  line.append(" ").append(to_string(level)).append(" ").append(event);
  for (const auto& field : fields)
    line.append(" ").append(field.name).append("=").append(quoted(field.value));
  line += '\n';
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace settle::daemon
