// Why something fails, for whoever asks the daemon: the code and what to do. What the error says beyond that,
// the statement for example, is for the log.
#pragma once

#include <string>

#include "settle/error.hpp"

namespace settle::daemon {

inline std::string plain_reason(const error& e) {
  const auto& about = info(e.code());
  return std::string(about.name) + " (" + std::string(about.advice) + "); the log says more";
}

}  // namespace settle::daemon
