#include "sqlite/member_locks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/sha256.hpp"

namespace settle::inline v0::sqlite {
namespace {

// Which byte of the file. Two members that share one, if that ever happens, wait for each other's leases.
off_t byte_of(std::string_view member) {
  const auto digest = sha256(member);
  std::uint64_t place = 0;
  for (std::size_t n = 0; n < sizeof place; ++n) place = place << 8U | static_cast<std::uint8_t>(digest[n]);
  return static_cast<off_t>(place >> 2U);  // positive, and never the last one
}

// Open-file-description locks, as the write queue has them: dropped by the kernel with their last descriptor,
// seen across containers that share the file, and not confused by process ids that are used again.
struct flock byte_lock(short type, off_t place) {
  struct flock one{};
  one.l_type = type;
  one.l_whence = SEEK_SET;
  one.l_start = place;
  one.l_len = 1;
  return one;
}

bool control(int fd, int command, struct flock& what) {
  int failed;
  do {
    failed = ::fcntl(fd, command, &what);
  } while (failed != 0 && errno == EINTR);
  return failed == 0;
}

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class held_byte final : public sql::presence {
 public:
  held_byte(descriptor file, off_t place) : file_(std::move(file)), place_(place) {}
  // Not by closing alone: a process that was forked meanwhile has the descriptor too.
  ~held_byte() override {
    auto none = byte_lock(F_UNLCK, place_);
    control(file_.get(), F_OFD_SETLK, none);
  }
  bool lasts() override { return true; }

 private:
  descriptor file_;
  off_t place_;
};

}  // namespace

std::unique_ptr<sql::presence> member_locks::show(const std::string& member) const {
  if (path_.empty()) return nullptr;
  descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  auto whole = byte_lock(F_WRLCK, byte_of(member));
  if (file.get() < 0 || !control(file.get(), F_OFD_SETLK, whole)) return nullptr;
  return std::make_unique<held_byte>(std::move(file), byte_of(member));
}

std::vector<std::string> member_locks::gone_of(std::span<const std::string> members) const {
  std::vector<std::string> gone;
  if (path_.empty() || members.empty()) return gone;
  const descriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) return gone;
  for (const auto& member : members) {
    auto asked = byte_lock(F_WRLCK, byte_of(member));
    if (member.ends_with(mark) && control(file.get(), F_OFD_GETLK, asked) && asked.l_type == F_UNLCK)
      gone.push_back(member);
  }
  return gone;
}

}  // namespace settle::inline v0::sqlite
