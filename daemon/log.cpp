#include "daemon/log.hpp"

#include <vector>

#include "base/log_line.hpp"

namespace settle::daemon {

void line_log::write(log_level level, std::string_view event, std::initializer_list<log_field> fields) {
  if (enabled(level)) write_log_line(level, event, fields);
}

void line_log::write_of(const std::string& service, log_level level, std::string_view event,
                        std::initializer_list<log_field> fields) {
  if (!enabled(level)) return;
  std::vector<log_field> all{{"service", service}};
  all.insert(all.end(), fields);
  write_log_line(level, event, all);
}

}  // namespace settle::daemon
