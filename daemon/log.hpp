// The daemon's log: one line per event of interest on standard error, `time level event name=value …`.
#pragma once

#include <atomic>
#include <string>

#include "settle/environment.hpp"

namespace settle::daemon {

class line_log final : public log_sink {
 public:
  explicit line_log(log_level least) : least_(least) {}

  bool enabled(log_level level) const override { return level >= least_; }
  void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override;
  // With the field `service` before the others.
  void write_of(const std::string& service, log_level level, std::string_view event,
                std::initializer_list<log_field> fields);

  // From now on.
  void set_least(log_level least) { least_ = least; }

 private:
  std::atomic<log_level> least_;
};

// The log of one service: every line says whose it is. That of the short form has no name, and says nothing.
class service_log final : public log_sink {
 public:
  service_log(line_log& to, std::string service) : to_(to), service_(std::move(service)) {}

  bool enabled(log_level level) const override { return to_.enabled(level); }
  void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override {
    if (service_.empty())
      to_.write(level, event, fields);
    else
      to_.write_of(service_, level, event, fields);
  }

 private:
  line_log& to_;
  std::string service_;
};

}  // namespace settle::daemon
