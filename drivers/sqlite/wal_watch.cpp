#include "sqlite/wal_watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace settle::inline v0::sqlite {

wal_watch::wal_watch(const std::string& database_path, const environment& env)
    : wal_path_(database_path + "-wal"), queue_path_(database_path + "-queue"), env_(env) {}

// Closing an inotify instance costs the kernel tens of milliseconds, so only who really waits opens one.
bool wal_watch::open() {
  if (stop_ < 0) stop_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (stop_ >= 0) inotify_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify_ < 0) {
    const auto why = std::string(std::strerror(errno)) +
                     "; the limits are fs.inotify.max_user_instances and the open files of the process";
    if (!std::exchange(reported_, true))
      env_.log->write(log_level::warning, "wakeups_unavailable", {{"file", wal_path_}, {"error", why}});
    return false;
  }
  watch(wal_path_, wal_);
  watch(queue_path_, queue_);
  return true;
}

wal_watch::~wal_watch() {
  if (inotify_ >= 0) ::close(inotify_);
  if (stop_ >= 0) ::close(stop_);
}

void wal_watch::watch(const std::string& path, int& descriptor) {
  if (descriptor < 0)
    descriptor = ::inotify_add_watch(inotify_, path.c_str(), IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF);
}

// A watch that ended (the file was deleted or replaced) is set again by the next wait().
wal_watch::news wal_watch::drain() {
  news found;
  alignas(inotify_event) std::array<char, 4096> buffer;
  ssize_t got;
  while ((got = ::read(inotify_, buffer.data(), buffer.size())) > 0) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const bool of_queue = event.wd == queue_;
      (of_queue ? found.committed : found.written) = true;
      if ((event.mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0) (of_queue ? queue_ : wal_) = -1;
      at += sizeof event + event.len;
    }
  }
  return found;
}

// False when the time is over.
bool wal_watch::poll(duration at_most) {
  std::array<pollfd, 2> ready{pollfd{inotify_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
  const auto ns = std::chrono::nanoseconds(at_most);
  const timespec limit{ns.count() / 1'000'000'000, ns.count() % 1'000'000'000};
  return ::ppoll(ready.data(), ready.size(), &limit, nullptr) > 0;
}

void wal_watch::wait(duration at_most, std::stop_token stop) {
  if (inotify_ < 0) {
    // Whoever waits here looks by itself after at_most, so going without wake-ups costs only time.
    if (!open()) asleep_.wait(at_most, std::move(stop));
    return;  // what was committed before the watch began must be looked for now
  }
  watch(wal_path_, wal_);
  watch(queue_path_, queue_);
  std::uint64_t earlier_stops;
  [[maybe_unused]] const auto ignored = ::read(stop_, &earlier_stops, sizeof earlier_stops);
  const std::stop_callback on_stop(stop, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto unused = ::write(stop_, &one, sizeof one);
  });
  if (stop.stop_requested() || !poll(at_most)) return;
  const auto found = drain();
  // The log was written: the commit follows in a moment, and one of our own announces it.
  constexpr duration until_visible = std::chrono::milliseconds(2);
  if (found.written && !found.committed && poll(until_visible)) drain();
}

void nothing_to_watch::wait(duration at_most, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  never_.wait_for(lock, stop, at_most, [] { return false; });
}

}  // namespace settle::inline v0::sqlite
