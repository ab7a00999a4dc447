// A batcher serves everyone who waits with one call: items that arrive while a batch is under way form
// the next one; alone, an item goes at once. There is no thread of its own: whoever finds nobody at work
// does the work for all, so a lone caller pays no hand-over between threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {

struct batcher_limits {
  std::size_t batch_max = 64;    // items per flush
  std::size_t queue_max = 4096;  // waiting items; more are refused with store_busy
};

template <class Item, class Result>
class batcher {
 public:
  // Returns one result per item, in order, or throws for all of them.
  using flush_function = std::function<std::vector<Result>(std::span<const Item>)>;

  batcher(flush_function flush, batcher_limits limits) : flush_(std::move(flush)), limits_(limits) {}

  // Adds one item and returns its result; rethrows what its flush threw. Thread-safe.
  Result call(Item item) {
    waiting mine{std::move(item), std::nullopt, nullptr, false};
    std::unique_lock lock(mutex_);
    if (queue_.size() >= limits_.queue_max)
      throw error(errc::store_busy, "more than " + std::to_string(limits_.queue_max) + " calls are waiting");
    queue_.push_back(&mine);
    while (!mine.done) {
      if (flushing_)
        changed_.wait(lock);
      else
        run_once(lock, mine);
    }
    if (mine.failure) std::rethrow_exception(mine.failure);
    return std::move(*mine.result);
  }

  std::size_t waiting_count() const {
    const std::scoped_lock lock(mutex_);
    return queue_.size();
  }

 private:
  struct waiting {
    Item item;
    std::optional<Result> result;
    std::exception_ptr failure;
    bool done;
  };

  // Takes what waits now, flushes it without the lock, and wakes its callers. Who has no memory for that
  // leaves the queue with the error; the others wait on.
  void run_once(std::unique_lock<std::mutex>& lock, waiting& mine) {
    std::vector<waiting*> batch;
    try {
      batch.reserve(std::min(queue_.size(), limits_.batch_max));
    } catch (...) {
      std::erase(queue_, &mine);
      throw;
    }
    while (!queue_.empty() && batch.size() < limits_.batch_max) {
      batch.push_back(queue_.front());
      queue_.pop_front();
    }
    flushing_ = true;
    lock.unlock();
    flush(batch);
    lock.lock();
    flushing_ = false;
    for (auto* one : batch) one->done = true;
    changed_.notify_all();
  }

  // A failure that is not the store's splits the batch, so that one bad item fails alone. Every caller gets
  // an error of its own: one object for all would be freed by whichever thread looks at it last.
  void flush(std::span<waiting* const> batch) noexcept {
    try {
      std::vector<Item> items;
      items.reserve(batch.size());
      for (const auto* one : batch) items.push_back(one->item);
      auto results = flush_(items);
      SETTLE_CHECK(results.size() == batch.size(), "a flush returns one result per item");
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i]->result = std::move(results[i]);
      return;
    } catch (const error& e) {
      if (e.retryable() || batch.size() == 1) {
        for (auto* one : batch) one->failure = failure_of(e);
        return;
      }
    } catch (...) {
      for (auto* one : batch) one->failure = std::current_exception();
      return;
    }
    const auto middle = batch.size() / 2;
    flush(batch.first(middle));
    flush(batch.subspan(middle));
  }

  static std::exception_ptr failure_of(const error& e) noexcept {
    try {
      return std::make_exception_ptr(detached(e));
    } catch (...) {  // no memory for a text of its own
      return std::current_exception();
    }
  }

  // A plain copy would share its text with the other copies.
  static error detached(const error& shared) {
    error own = shared;
    static_cast<std::runtime_error&>(own) = std::runtime_error(std::string(shared.what()));
    return own;
  }

  flush_function flush_;
  batcher_limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<waiting*> queue_;
  bool flushing_ = false;
};

}  // namespace settle
