// Disks that run out of room: a limit on the size of files, and a small file system of one's own. Both change
// the process that asks, so they are for forked children (child_process.hpp).
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace settle::test {

// While it lives, no file of this process can grow beyond so many bytes. What is larger already stays.
class file_size_limit {
 public:
  explicit file_size_limit(std::uintmax_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);  // the write fails (EFBIG) instead of ending the process
    if (::getrlimit(RLIMIT_FSIZE, &before_) != 0) throw std::runtime_error("getrlimit failed");
    set({static_cast<rlim_t>(bytes), before_.rlim_max});
  }
  ~file_size_limit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;

 private:
  static void set(const rlimit& limit) {
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("setrlimit failed");
  }
  rlimit before_{};
};

inline bool write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  return written;
}

// Mounts of its own, as root or as the root of a user namespace.
inline bool enter_own_mounts() {
  const auto uid = std::to_string(::getuid()), gid = std::to_string(::getgid());
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/uid_map", "0 " + uid + " 1") ||
        !write_text("/proc/self/gid_map", "0 " + gid + " 1"))
      return false;
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Lays a file system of that size over `folder`; it ends with this process. False where that is forbidden.
inline bool mount_small_disk(const std::string& folder, std::uintmax_t bytes) {
  const auto size = "size=" + std::to_string(bytes);
  return enter_own_mounts() && ::mount("tmpfs", folder.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

}  // namespace settle::test
