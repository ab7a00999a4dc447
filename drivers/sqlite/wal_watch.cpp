#include "sqlite/wal_watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "settle/error.hpp"

namespace settle::sqlite {

wal_watch::wal_watch(const std::string& database_path)
    : wal_path_(database_path + "-wal"),
      inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      stop_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (inotify_ < 0 || stop_ < 0)
    throw error(errc::store_unavailable,
                std::string("cannot watch ") + wal_path_ + ": " + std::strerror(errno) +
                    "; the limits are fs.inotify.max_user_instances and the open files of the process");
  watch();
}

wal_watch::~wal_watch() {
  if (inotify_ >= 0) ::close(inotify_);
  if (stop_ >= 0) ::close(stop_);
}

void wal_watch::watch() {
  if (watched_ < 0)
    watched_ = ::inotify_add_watch(inotify_, wal_path_.c_str(), IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF);
}

// A watch that ended (the file was deleted or replaced) is set again by the next wait().
void wal_watch::drain() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  ssize_t got;
  while ((got = ::read(inotify_, buffer.data(), buffer.size())) > 0) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      if ((event.mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0) watched_ = -1;
      at += sizeof event + event.len;
    }
  }
}

void wal_watch::wait(duration at_most, std::stop_token stop) {
  watch();
  const std::stop_callback on_stop(stop, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(stop_, &one, sizeof one);
  });
  if (stop.stop_requested()) return;
  std::array<pollfd, 2> ready{pollfd{inotify_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
  const auto ns = std::chrono::nanoseconds(at_most);
  const timespec limit{ns.count() / 1'000'000'000, ns.count() % 1'000'000'000};
  ::ppoll(ready.data(), ready.size(), &limit, nullptr);
  drain();
}

}  // namespace settle::sqlite
