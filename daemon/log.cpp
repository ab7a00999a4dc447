#include "daemon/log.hpp"

#include "base/log_line.hpp"

namespace settle::daemon {

void line_log::write(log_level level, std::string_view event, std::initializer_list<log_field> fields) {
  if (enabled(level)) write_log_line(level, event, fields);
}

}  // namespace settle::daemon
