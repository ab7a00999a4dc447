// A log that remembers instead of printing.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "settle/environment.hpp"

namespace settle::test {

class quiet_log final : public log_sink {
 public:
  bool enabled(log_level) const override { return true; }

  void write(log_level, std::string_view event, std::initializer_list<log_field> fields) override {
    std::string line(event);
    for (const auto& field : fields) line.append(" ").append(field.name).append("=").append(field.value);
    const std::scoped_lock lock(mutex_);
    lines_.push_back(std::move(line));
  }

  // How many records begin with this event's name.
  std::size_t count(std::string_view event) const {
    const std::scoped_lock lock(mutex_);
    std::size_t found = 0;
    for (const auto& line : lines_) found += line.starts_with(event);
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace settle::test
