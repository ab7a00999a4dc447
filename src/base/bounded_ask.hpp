// A question to something that may not answer. It is asked on a thread of its own, so whoever asks waits only
// as long as it wants to; who asks while a question is under way gets the answer to that one. So a store that
// hangs costs one thread, however many people look.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "settle/environment.hpp"

namespace settle::inline v0 {

template <class Answer>
class bounded_ask {
 public:
  // `question` may take as long as it likes, but must end; it must not throw.
  explicit bounded_ask(std::function<Answer()> question) : question_(std::move(question)) {}
  // Waits for a question that is under way.
  ~bounded_ask() {
    if (thread_.joinable()) thread_.join();
  }
  bounded_ask(const bounded_ask&) = delete;
  bounded_ask& operator=(const bounded_ask&) = delete;

  // Asks, unless a question is under way, and does not wait: for those who ask several at once. Where there
  // is no room for a thread nothing is asked, and nobody answers.
  void begin() {
    const std::scoped_lock lock(mutex_);
    if (under_way_) return;
    if (thread_.joinable()) thread_.join();  // it has ended, or is about to
    answer_.reset();
    try {
      thread_ = std::thread([this] { ask(); });  // it waits for the lock before it notes its answer
      under_way_ = true;
    } catch (const std::system_error&) {
    }
  }

  // The answer to what was begun; nothing if there is none after `at_most`.
  std::optional<Answer> wait(duration at_most) {
    std::unique_lock lock(mutex_);
    answered_.wait_for(lock, at_most, [&] { return !under_way_; });
    return answer_;
  }

 private:
  void ask() {
    auto answer = question_();
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(answer);
    under_way_ = false;
    answered_.notify_all();
  }

  std::function<Answer()> question_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<Answer> answer_;  // none while a question is under way
  bool under_way_ = false;
  std::thread thread_;
};

}  // namespace settle::inline v0
