// The daemon's log: one line per event of interest on standard error, `time level event name=value …`.
#pragma once

#include "settle/environment.hpp"

namespace settle::daemon {

class line_log final : public log_sink {
 public:
  explicit line_log(log_level least) : least_(least) {}

  bool enabled(log_level level) const override { return level >= least_; }
  void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override;

 private:
  log_level least_;
};

}  // namespace settle::daemon
