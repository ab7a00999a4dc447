#include "sqlite/write_queue.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
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
    throw error(
        errc::store_busy,
        fmt::format(
            "no turn to write within {} ms: another transaction, in this process or another, holds {}",
            std::chrono::duration_cast<std::chrono::milliseconds>(at_most).count(), s.path));
  };
  const auto my_turn = [&] { return !s.taken && s.waiting.front() == &me; };
  s.waiting.push_back(&me);
  if (!s.changed.wait_until(lock, cancel, deadline, my_turn)) give_up();
  s.waiting.pop_front();
  s.taken = true;
  if (s.file == file_lock::none && s.try_file_lock()) s.file = file_lock::ours;
  if (s.file == file_lock::ours) return turn(state_);

  s.file = file_lock::awaited;
  if (!s.helper_started) {
    std::thread([kept = state_] { help(kept); }).detach();
    s.helper_started = true;
  }
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
