#include "outbox/page_reader.hpp"

namespace settle::outbox {
namespace {

constexpr std::size_t pages_ahead = 2;  // each may hold batch_bytes_max

}  // namespace

page_reader::page_reader(const share_group& first, fetch how)
    : fetch_(std::move(how)), thread_([this, first](const std::stop_token& stop) { run(stop, first); }) {}

page_reader::~page_reader() = default;  // the thread goes first: it stops after its page

void page_reader::run(const std::stop_token& stop, share_group next) {
  try {
    while (!stop.stop_requested()) {
      auto read = fetch_(next);
      next.from = read.end;
      const bool last = read.end.upto == 0;
      std::unique_lock lock(mutex_);
      ready_.push_back(std::move(read));
      ended_ = last;
      changed_.notify_all();
      if (last || !changed_.wait(lock, stop, [&] { return ready_.size() < pages_ahead; })) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failed_ = std::current_exception();
    changed_.notify_all();
  }
}

std::optional<page> page_reader::take(const share_group& wanted) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failed_ || ended_; });
  if (ready_.empty() && failed_) std::rethrow_exception(failed_);
  if (ready_.empty() || ready_.front().of != wanted) return std::nullopt;
  auto taken = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return taken;
}

}  // namespace settle::outbox
