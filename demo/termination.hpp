// Waiting for SIGTERM. It is blocked before any thread starts (by whoever started us, too), so that only
// wait() receives it.
#pragma once

#include <signal.h>

namespace storm {

class termination {
 public:
  termination() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void wait() const {
    int received = 0;
    sigwait(&signals_, &received);
  }

 private:
  sigset_t signals_{};
};

}  // namespace storm
