#include "http/job.hpp"

#include <utility>

namespace settle::inline v0::http {

job_chain::job_chain(job_chain&& other) noexcept
    : first_(std::move(other.first_)),
      last_(std::exchange(other.last_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

job_chain& job_chain::operator=(job_chain&& other) noexcept {
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(size_, other.size_);
  return *this;
}

// One by one: each owns the next, and a long chain would be as deep on the stack.
job_chain::~job_chain() {
  while (pop() != nullptr) {
  }
}

void job_chain::push(std::shared_ptr<job> one) noexcept {
  auto* const added = one.get();
  (last_ == nullptr ? first_ : last_->next) = std::move(one);
  last_ = added;
  ++size_;
}

std::shared_ptr<job> job_chain::pop() noexcept {
  if (first_ == nullptr) return nullptr;
  auto one = std::exchange(first_, nullptr);
  first_ = std::move(one->next);
  if (first_ == nullptr) last_ = nullptr;
  --size_;
  return one;
}

void job_chain::append(job_chain all) noexcept {
  if (all.empty()) return;
  (last_ == nullptr ? first_ : last_->next) = std::move(all.first_);
  last_ = std::exchange(all.last_, nullptr);
  size_ += std::exchange(all.size_, 0);
}

job_source::job_source(const environment& env, std::function<void()> answered)
    : env_(env), answered_(std::move(answered)) {}

// They count as back when the server has been woken: until then it must not be gone.
void job_source::give_back(job_chain all) noexcept {
  const auto count = all.size();
  std::unique_lock lock(mutex_);
  const bool first = done_.empty();
  done_.append(std::move(all));
  if (first) {
    lock.unlock();
    answered_();
    lock.lock();
  }
  back_ += count;
  came_back_.notify_all();
}

job_chain job_source::take_answered() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(done_, {});
}

void job_source::wait_for_all(std::size_t withdrawn) {
  std::unique_lock lock(mutex_);
  came_back_.wait(lock, [&] { return back_ + withdrawn == given_; });
}

}  // namespace settle::inline v0::http
