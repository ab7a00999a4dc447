#include "sqlite/write_queue.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>

#include "settle/error.hpp"

namespace settle::inline v0::sqlite {
namespace {

// Open-file-description locks: they belong to the descriptor, not to the process, so closing another
// descriptor of the same file does not drop them, and the kernel drops them when the process dies.
bool lock_file(int fd, int command, short type) {
  struct flock what{};
  what.l_type = type;
  what.l_whence = SEEK_SET;
  int failed;
  do {
    failed = ::fcntl(fd, command, &what);
  } while (failed != 0 && errno == EINTR);
  return failed == 0;
}

bool is_file(const std::filesystem::path& path, const struct stat& which) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && found.st_dev == which.st_dev && found.st_ino == which.st_ino;
}

// The kernel lists the locks of a descriptor beside it.
bool has_lock(const std::filesystem::path& process, const struct stat& file) {
  std::error_code gone;
  for (std::filesystem::directory_iterator fd(process / "fd", gone), end; !gone && fd != end;
       fd.increment(gone)) {
    if (!is_file(fd->path(), file)) continue;
    std::ifstream about(process / "fdinfo" / fd->path().filename());
    for (std::string line; std::getline(about, line);)
      if (line.find("OFDLCK") != std::string::npos) return true;
  }
  return false;
}

// Who has the lock on this file, as far as we may look. A lock of this kind has no process id of its own.
std::string describe_holder(const std::string& path) {
  struct stat file{};
  std::error_code gone;
  if (path.empty() || ::stat(path.c_str(), &file) != 0) return {};
  for (std::filesystem::directory_iterator one("/proc", gone), end; !gone && one != end;
       one.increment(gone)) {
    const auto name = one->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || !has_lock(one->path(), file)) continue;
    return std::stol(name) == ::getpid() ? "this process" : "process " + name;
  }
  return {};
}

[[noreturn]] void throw_busy(duration waited, const std::string& path) {
  const auto holder = describe_holder(path);
  throw error(
      errc::store_busy,
      fmt::format("no turn to write within {} ms: {} holds {}",
                  std::chrono::duration_cast<std::chrono::milliseconds>(waited).count(),
                  holder.empty() ? "another transaction, in this process or another," : holder, path));
}

}  // namespace

// Who has the file lock, as seen from this process.
enum class file_lock { none, awaited, ours };

struct write_queue::state {
  std::string path;
  int fd = -1;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<int*> waiting;  // identities of waiting callers, in order
  bool taken = false;        // somebody in this process has the turn
  file_lock file = file_lock::none;
  bool helper_started = false;
  bool closing = false;

  ~state() {
    if (fd >= 0) ::close(fd);
  }

  bool shared() const { return fd >= 0; }

  bool try_file_lock() { return !shared() || lock_file(fd, F_OFD_SETLK, F_WRLCK); }

  void drop_file_lock() {
    if (shared()) lock_file(fd, F_OFD_SETLK, F_UNLCK);
    file = file_lock::none;
  }
};

namespace {

// Waits for the file lock on behalf of callers, because a blocking fcntl() knows no deadline and no
// cancellation. Only contended turns come here; it lives as long as the queue and may outlive it while
// it is blocked.
void help(const std::shared_ptr<write_queue::state>& s) {
  std::unique_lock lock(s->mutex);
  while (true) {
    s->changed.wait(lock, [&] { return s->closing || s->file == file_lock::awaited; });
    if (s->closing) return;
    lock.unlock();
    const bool locked = lock_file(s->fd, F_OFD_SETLKW, F_WRLCK);
    lock.lock();
    s->file = locked ? file_lock::ours : file_lock::none;
    if (locked && !s->taken) s->drop_file_lock();  // whoever asked has given up meanwhile
    s->changed.notify_all();
  }
}

// Whoever needs it has the turn, and must not keep it without a thread that waits for the file.
void start_helper(const std::shared_ptr<write_queue::state>& s) {
  const auto give_turn_back = [&] {
    s->taken = false;
    s->changed.notify_all();
  };
  try {
    std::thread([kept = s] { help(kept); }).detach();
  } catch (const std::system_error& e) {
    give_turn_back();
    throw error(errc::store_unavailable,
                fmt::format("cannot start the thread that waits for {}: {}; the limits are RLIMIT_NPROC and "
                            "the tasks of the control group",
                            s->path, e.code().message()));
  } catch (...) {  // no memory for it
    give_turn_back();
    throw;
  }
  s->helper_started = true;
}

}  // namespace

write_queue::write_queue(const std::string& lock_path) : state_(std::make_shared<state>()) {
  state_->path = lock_path;
  if (lock_path.empty()) return;
  state_->fd = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (state_->fd < 0)
    throw error(errc::store_unavailable, fmt::format("cannot open {}: {}", lock_path, std::strerror(errno)));
}

write_queue::~write_queue() {
  const std::scoped_lock lock(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
}

write_queue::turn write_queue::acquire(duration at_most, const std::stop_token& cancel) {
  auto& s = *state_;
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  int me = 0;
  std::unique_lock lock(s.mutex);
  const auto give_up = [&] {
    std::erase(s.waiting, &me);
    s.changed.notify_all();
    if (cancel.stop_requested()) throw error(errc::cancelled, "stopped while waiting to write");
    lock.unlock();  // to find out who is in the way takes a moment
    throw_busy(at_most, s.path);
  };
  const auto my_turn = [&] { return !s.taken && s.waiting.front() == &me; };
  s.waiting.push_back(&me);
  if (!s.changed.wait_until(lock, cancel, deadline, my_turn)) give_up();
  s.waiting.pop_front();
  s.taken = true;
  if (s.file == file_lock::none && s.try_file_lock()) s.file = file_lock::ours;
  if (s.file == file_lock::ours) return turn(state_);

  if (!s.helper_started) start_helper(state_);
  s.file = file_lock::awaited;
  s.changed.notify_all();
  const auto settled = [&] { return s.file != file_lock::awaited; };
  s.changed.wait_until(lock, cancel, deadline, settled);
  if (s.file == file_lock::ours) return turn(state_);
  s.taken = false;
  give_up();
  return {};
}

void write_queue::turn::announce() const noexcept {
  if (of_ && of_->shared()) [[maybe_unused]]
    const auto ignored = ::pwrite(of_->fd, "!", 1, 0);
}

void write_queue::turn::release() noexcept {
  if (!of_) return;
  {
    const std::scoped_lock lock(of_->mutex);
    of_->drop_file_lock();
    of_->taken = false;
    of_->changed.notify_all();
  }
  of_.reset();
}

}  // namespace settle::inline v0::sqlite
