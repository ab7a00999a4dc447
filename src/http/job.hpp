// One request on its way to a handler and back to the server that it came to.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>

#include "http/routes.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

class job_source;

struct job {
  enum class phase { waiting, running, answered, given_up };

  request asked;
  match to;
  job_source* from = nullptr;
  std::uint64_t session = 0;
  std::size_t body_bytes = 0;
  std::size_t held_bytes = 0;  // of them, what counts among the server's own
  std::stop_source cancel;
  std::atomic<phase> at = phase::waiting;
  response answer;
  std::shared_ptr<job> next;  // of the chain that it is in

  // Nobody waits for it any more. True: its handler has not begun, and never will.
  bool give_up() {
    cancel.request_stop();
    return at.exchange(phase::given_up) == phase::waiting;
  }
  // Its client has gone. A handler that has begun is left alone.
  void leave() {
    auto expected = phase::waiting;
    at.compare_exchange_strong(expected, phase::given_up);
  }
};

// Jobs in their order. A job is in one chain at most, and nothing here needs memory.
class job_chain {
 public:
  job_chain() = default;
  job_chain(job_chain&& other) noexcept;
  job_chain& operator=(job_chain&& other) noexcept;
  ~job_chain();

  void push(std::shared_ptr<job> one) noexcept;
  std::shared_ptr<job> pop() noexcept;  // null: there is none
  void append(job_chain all) noexcept;

  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  // for (auto* one = chain.first(); one != nullptr; one = one->next.get())
  job* first() const { return first_.get(); }

 private:
  std::shared_ptr<job> first_;
  job* last_ = nullptr;
  std::size_t size_ = 0;
};

// A server, as the workers see it that it gives jobs to. Each job comes back once. Lives until all of them
// have: wait_for_all().
class job_source {
 public:
  // `answered` is called by a worker when take_answered() has something again.
  job_source(const environment& env, std::function<void()> answered);
  job_source(const job_source&) = delete;
  job_source& operator=(const job_source&) = delete;

  const environment& env() const { return env_; }

  // By the one thread that gives jobs away, for each that is taken on.
  void note_given() { ++given_; }

  // By workers; not empty. Afterwards none of them knows anything of these jobs.
  void give_back(job_chain all) noexcept;
  // Every job whose handler has returned, or that was given up before it began.
  job_chain take_answered();

  // When nothing is given away any more. All that are under way have come back, and `withdrawn` of those
  // that were waiting.
  void wait_for_all(std::size_t withdrawn);

 private:
  environment env_;
  std::function<void()> answered_;
  std::size_t given_ = 0;
  std::mutex mutex_;
  std::condition_variable came_back_;
  job_chain done_;
  std::size_t back_ = 0;
};

}  // namespace settle::inline v0::http
