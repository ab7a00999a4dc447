// Why the daemon does not start, in words for the person who started it.
#pragma once

#include <stdexcept>

namespace settle::daemon {

// Scripts and the systemd unit rely on these.
enum exit_code : int {
  exit_clean = 0,
  exit_cannot_start = 2,       // bad configuration, a folder that cannot be used, a second daemon
  exit_store_unavailable = 3,  // the same start may succeed later
  exit_out_of_memory = 4,      // at any time
};

class startup_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace settle::daemon
