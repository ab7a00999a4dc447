#include "http/workers.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "http/run_jobs.hpp"

namespace settle::inline v0::http {
namespace {

// Whatever waits is served at once if nobody serves its line. A further turn beside another one has to be
// worth its transaction: by then, half a batch waits, beside what the turns that come will take. So every
// turn finds somebody who waits.
bool is_worth_a_turn(const batch& of, const batch_line& line, std::size_t waiting) {
  if (waiting == 0 || line.served_by == of.at_once_max) return false;
  return line.served_by == 0 || 2 * waiting >= of.size_max * (1 + 2 * line.coming);
}

std::size_t body_bytes_of(const job_chain& all) {
  std::size_t bytes = 0;
  for (const auto* one = all.first(); one != nullptr; one = one->next.get()) bytes += one->body_bytes;
  return bytes;
}

}  // namespace

workers::workers(const worker_group_options& options) : limits_(options) {
  threads_.reserve(options.threads);  // so that a thread that was started has its place
}

workers::~workers() {
  {
    const std::scoped_lock lock(mutex_);
    SETTLE_CHECK(waiting_ == 0, "a request waits for workers that end");
    ending_ = true;
  }
  arrived_.notify_all();
  for (auto& one : threads_) {
    SETTLE_CHECK(one.get_id() != std::this_thread::get_id(), "a worker ends the group that it belongs to");
    one.join();
  }
}

void workers::start_all() {
  const std::scoped_lock lock(mutex_);
  while (threads_.size() < limits_.threads) start_thread();
}

refusal workers::give(std::shared_ptr<job> what) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto refused = refusal_of(*what)) return refused;
    const auto turns_before = turns_.size();
    const auto bytes = what->body_bytes;
    auto& from = *what->from;
    if (const auto* together = what->to.found->together.get()) {
      line_up(*together, what);
    } else {
      find_thread();
      turns_.emplace_back(std::move(what));
    }
    ++waiting_;
    bodies_bytes_ += bytes;
    from.note_given();
    if (turns_.size() == turns_before) return {};
  }
  arrived_.notify_one();
  return {};
}

// One body alone is always taken: otherwise it could be sent again for ever.
refusal workers::refusal_of(const job& what) const {
  if (waiting_ >= limits_.queue_max)
    return {503, "queue_full", "too many requests wait; nothing was done, try again"};
  if (bodies_bytes_ > 0 && what.body_bytes > 0 && bodies_bytes_ + what.body_bytes > limits_.bodies_bytes_max)
    return {503, "memory_full", "too many large requests at once; nothing was done, try again"};
  return {};
}

void workers::start_thread() {
  threads_.emplace_back([this] { work(); });
  ++idle_;
}

// For one more turn than there are. Without a new thread the old ones do it all.
void workers::find_thread() {
  if (turns_.size() < idle_ || threads_.size() == limits_.threads) return;
  try {
    start_thread();
  } catch (...) {
    if (threads_.empty()) throw;
  }
}

void workers::line_up(const batch& together, std::shared_ptr<job>& what) {
  const auto at = lines_.try_emplace(&together).first;
  auto& line = at->second;
  try {
    if (is_worth_a_turn(together, line, line.waiting.size() + 1)) {
      find_thread();
      give_turn(&together, line);
    }
  } catch (...) {
    if (line.served_by == 0) lines_.erase(at);
    throw;
  }
  line.waiting.push(std::move(what));
}

void workers::give_turn(const batch* to, batch_line& line) {
  turns_.emplace_back(to);
  ++line.coming;
  ++line.served_by;
}

void workers::work() {
  std::unique_lock lock(mutex_);
  std::optional<turn> next;
  while (true) {
    if (!next) {
      arrived_.wait(lock, [&] { return ending_ || !turns_.empty(); });
      if (turns_.empty()) return;
      next = std::move(turns_.front());
      turns_.pop_front();
      --idle_;
    }
    auto all = take(*next);
    lock.unlock();
    if (!all.empty()) run_jobs(all);
    lock.lock();
    // Before they are given back: then their batch may be gone.
    next = after(*next);
    if (!next) ++idle_;
    bodies_bytes_ -= body_bytes_of(all);
    lock.unlock();
    if (auto* const first = all.first()) first->from->give_back(std::move(all));
    lock.lock();
  }
}

job_chain workers::take(turn& next) {
  job_chain taken;
  if (auto* const one = std::get_if<0>(&next)) {
    taken.push(std::move(*one));
  } else {
    const auto* together = std::get<const batch*>(next);
    auto& line = lines_.find(together)->second;
    --line.coming;
    while (!line.waiting.empty() && taken.size() < together->size_max) taken.push(line.waiting.pop());
  }
  waiting_ -= taken.size();
  return taken;
}

// A turn is over. If its line is worth another one, that goes to the end of the queue; where there is no
// memory for it, whoever had this one takes it at once.
std::optional<workers::turn> workers::after(const turn& done) {
  const auto* const* together = std::get_if<const batch*>(&done);
  if (together == nullptr) return std::nullopt;
  const auto at = lines_.find(*together);
  auto& line = at->second;
  --line.served_by;
  if (!is_worth_a_turn(**together, line, line.waiting.size())) {
    if (line.served_by == 0) lines_.erase(at);
    return std::nullopt;
  }
  try {
    give_turn(*together, line);
    return std::nullopt;
  } catch (...) {
    ++line.coming;
    ++line.served_by;
    return *together;
  }
}

job_chain workers::withdraw(const job_source& from) {
  job_chain all;
  const std::scoped_lock lock(mutex_);
  std::erase_if(turns_, [&](turn& one) {
    if (auto* const alone = std::get_if<0>(&one)) {
      if ((*alone)->from != &from) return false;
      all.push(std::move(*alone));
      return true;
    }
    auto& line = lines_.find(std::get<const batch*>(one))->second;
    if (line.waiting.empty() || line.waiting.first()->from != &from) return false;
    --line.coming;
    --line.served_by;
    return true;
  });
  for (auto at = lines_.begin(); at != lines_.end();) {
    auto& line = at->second;
    if (!line.waiting.empty() && line.waiting.first()->from == &from) all.append(std::move(line.waiting));
    at = line.served_by == 0 ? lines_.erase(at) : std::next(at);
  }
  waiting_ -= all.size();
  bodies_bytes_ -= body_bytes_of(all);
  return all;
}

std::size_t workers::threads_started() const {
  const std::scoped_lock lock(mutex_);
  return threads_.size();
}

std::size_t workers::waiting() const {
  const std::scoped_lock lock(mutex_);
  return waiting_;
}

}  // namespace settle::inline v0::http
