#include "http/workers.hpp"

#include <utility>

namespace settle::inline v0::http {

workers::workers(std::size_t threads, std::size_t queue_max, const environment& env,
                 std::function<void()> answered)
    : queue_max_(queue_max), env_(env), answered_(std::move(answered)) {
  for (std::size_t n = 0; n < threads; ++n)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

workers::~workers() {
  for (auto& one : threads_) one.request_stop();
  threads_.clear();
}

bool workers::give(std::shared_ptr<job> what) {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() >= queue_max_) return false;
    waiting_.push_back(std::move(what));
  }
  arrived_.notify_one();
  return true;
}

std::vector<std::shared_ptr<job>> workers::take_answered() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(done_, {});
}

void workers::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (arrived_.wait(lock, stop, [&] { return !waiting_.empty(); }) && !stop.stop_requested()) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    run(*next);
    lock.lock();
    const bool first = done_.empty();
    done_.push_back(std::move(next));
    if (!first) continue;
    lock.unlock();
    answered_();
    lock.lock();
  }
}

void workers::run(job& what) const {
  auto expected = job::phase::waiting;
  if (!what.at.compare_exchange_strong(expected, job::phase::running)) return;
  what.answer = answer_of(what.to.found->what, what.asked, env_, what.to.path->pattern);
  expected = job::phase::running;
  if (what.at.compare_exchange_strong(expected, job::phase::answered)) return;
  env_.log->write(log_level::warning, "http_answer_dropped",
                  {{"route", what.to.path->pattern},
                   {"status", std::to_string(what.answer.status)},
                   {"advice", "the handler returned after its client had been told 503, or was gone"}});
}

}  // namespace settle::inline v0::http
