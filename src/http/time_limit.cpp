#include "http/time_limit.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

constexpr duration longest = std::chrono::hours(24 * 365);  // what is longer would overflow the clock

int milliseconds_until(steady::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

void time_limit::waker::operator()() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor, &one, sizeof one);
}

time_limit::time_limit(duration time, std::stop_token stop)
    : until_(steady::now() + std::clamp(time, duration::zero(), longest)), stop_(std::move(stop)) {
  if (!stop_.stop_possible()) return;
  woken_ = descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!woken_)
    throw error(errc::destination_unavailable,
                std::string("no file descriptor for a request: ") + std::strerror(errno));
  on_stop_.emplace(stop_, waker{woken_.get()});
}

waited time_limit::wait(int socket, short events, steady::time_point until) const {
  pollfd all[] = {{socket, events, 0}, {woken_.get(), POLLIN, 0}};  // a negative one is left out
  while (true) {
    if (stop_.stop_requested()) return waited::stopped;
    const int left = milliseconds_until(until);
    if (::poll(all, 2, left) > 0 && all[0].revents != 0) return waited::ready;
    if (left == 0) return waited::late;
  }
}

}  // namespace settle::inline v0::http
