#include "postgres/poller.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

int milliseconds_until(steady::time_point then) {
  if (then == steady::time_point::max()) return -1;
  constexpr std::int64_t longest = 3'600'000;  // poll(2) counts in an int; whoever waits longer asks again
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - steady::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, longest));
}

}  // namespace

poller::~poller() {
  if (stop_ >= 0) ::close(stop_);
}

waited poller::wait(int socket, short events, const limit& within) {
  const bool can_stop = within.stop.stop_possible();
  if (can_stop && stop_ < 0) {
    stop_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (stop_ < 0)
      throw error(errc::store_unavailable, "no file descriptor left to wait for the server with");
  }
  if (can_stop) {
    std::uint64_t earlier_stops;
    [[maybe_unused]] const auto ignored = ::read(stop_, &earlier_stops, sizeof earlier_stops);
  }
  const std::stop_callback on_stop(within.stop, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto unused = ::write(stop_, &one, sizeof one);
  });
  std::array<pollfd, 2> ready{pollfd{socket, events, 0}, pollfd{stop_, POLLIN, 0}};
  while (true) {
    if (within.stop.stop_requested()) return waited::stopped;
    const int found = ::poll(ready.data(), can_stop ? 2 : 1, milliseconds_until(within.until));
    if (found < 0 && errno != EINTR) throw error(errc::store_unavailable, "poll(2) failed");
    if (found > 0 && ready[0].revents != 0) return waited::ready;
    if (found == 0 && steady::now() >= within.until) return waited::timed_out;
  }
}

}  // namespace settle::inline v0::postgres
