// The threads that run handlers, and the queue in front of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <variant>
#include <vector>

#include "http/routes.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

// One request on its way to a handler and back.
struct job {
  enum class phase { waiting, running, answered, given_up };

  request asked;
  match to;
  std::uint64_t session = 0;
  std::size_t held_bytes = 0;
  std::stop_source cancel;
  std::atomic<phase> at = phase::waiting;
  response answer;
  std::shared_ptr<job> next;  // of those that are answered and not fetched

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

// Requests that wait to be answered together. Few workers at a time serve a line, so that the next batch is
// what has come meanwhile.
struct batch_line {
  std::deque<std::shared_ptr<job>> waiting;
  std::size_t coming = 0;     // turns that wait for a worker
  std::size_t served_by = 0;  // these, and those under way
};

// From the moment that a job is taken on, nothing of what is done with it here needs memory: where there is
// none, its handler says so, and the answer is 503.
class workers {
 public:
  // `answered` is called by a worker when take_answered() has something again.
  workers(std::size_t threads, std::size_t queue_max, std::size_t batch_max, const environment& env,
          std::function<void()> answered);
  // What waits is given up; what runs is waited for.
  ~workers();
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  // False: too many wait already. If it throws, for want of memory, it has not taken the job.
  bool give(std::shared_ptr<job> what);

  // Every job whose handler has returned, or that was given up before it began, once: the first of a chain.
  std::shared_ptr<job> take_answered();

 private:
  using jobs = std::vector<std::shared_ptr<job>>;
  using turn = std::variant<std::shared_ptr<job>, const batch*>;

  void work(const std::stop_token& stop, jobs all);
  bool line_up(const batch* together, std::shared_ptr<job> what);
  void give_turn(const batch* to, batch_line& line);
  std::optional<turn> take_next_of(const turn& done);
  void take(const turn& next, jobs& into);
  bool note_done(jobs& all);
  void run(const jobs& all) const noexcept;
  void run_together(const jobs& all) const noexcept;
  static void refuse_all(const jobs& all) noexcept;
  static bool begin(job& what) noexcept;
  void end(job& what) const noexcept;

  std::size_t queue_max_;
  environment env_;
  std::function<void()> answered_;
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<turn> turns_;
  std::map<const batch*, batch_line> lines_;
  std::size_t waiting_ = 0;    // in all of them
  std::shared_ptr<job> done_;  // the first of a chain
  job* done_last_ = nullptr;
  std::vector<std::jthread> threads_;
};

}  // namespace settle::inline v0::http
