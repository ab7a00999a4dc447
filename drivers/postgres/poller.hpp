// Waits until a socket can be read or written, a time has come, or somebody wants it to stop.
#pragma once

#include "postgres/handle.hpp"

namespace settle::inline v0::postgres {

enum class waited { ready, timed_out, stopped };

class poller {
 public:
  poller() = default;
  ~poller();
  poller(const poller&) = delete;
  poller& operator=(const poller&) = delete;

  // `events` as for poll(2).
  waited wait(int socket, short events, const limit& within);

 private:
  int stop_ = -1;  // an eventfd, made by the first wait that can be stopped
};

}  // namespace settle::inline v0::postgres
