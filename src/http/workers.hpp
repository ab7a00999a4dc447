// The threads that run handlers, and the queue in front of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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

class workers {
 public:
  // `answered` is called by a worker when take_answered() has something again.
  workers(std::size_t threads, std::size_t queue_max, const environment& env, std::function<void()> answered);
  // What waits is given up; what runs is waited for.
  ~workers();
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  // False: too many wait already.
  bool give(std::shared_ptr<job> what);

  // Every job whose handler has returned, or that was given up before it began, once.
  std::vector<std::shared_ptr<job>> take_answered();

 private:
  using jobs = std::vector<std::shared_ptr<job>>;
  using turn = std::variant<std::shared_ptr<job>, const batch*>;

  void work(const std::stop_token& stop);
  void give_turn(const batch* to, batch_line& line);
  jobs take(const turn& next);
  void run(const jobs& all) const;
  void run_together(const jobs& all) const;
  bool begin(job& what) const;
  void end(job& what) const;

  std::size_t queue_max_;
  environment env_;
  std::function<void()> answered_;
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<turn> turns_;
  std::map<const batch*, batch_line> lines_;
  std::size_t waiting_ = 0;  // in all of them
  jobs done_;
  std::vector<std::jthread> threads_;
};

}  // namespace settle::inline v0::http
