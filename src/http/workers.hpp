// The threads that run handlers, and the queue in front of them: what a server has of its own, and what is
// inside of a worker_group.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "http/job.hpp"
#include "http/refusal.hpp"
#include "http/routes.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

// Requests that wait to be answered together. Few workers at a time serve a line, so that the next batch is
// what has come meanwhile. It is there as long as one of its jobs waits or runs, and so is their batch.
struct batch_line {
  job_chain waiting;
  std::size_t coming = 0;     // turns that wait for a worker
  std::size_t served_by = 0;  // these, and those under way
};

// From the moment that a job is taken on, nothing of what is done with it here needs memory: where there is
// none, its handler says so, and the answer is 503. A job keeps its routes, and with them the group that
// serves it; it is let go by the server that it has been given back to, never by a worker.
class workers {
 public:
  explicit workers(const worker_group_options& options);
  // Nothing waits or runs any more.
  ~workers();
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  // All threads at once, for who would rather fail now than refuse requests later. Throws if one cannot
  // start.
  void start_all();

  // Starts a thread if none is idle and there may be another one. If it throws, for want of memory or of the
  // first thread, it has not taken the job.
  refusal give(std::shared_ptr<job> what);

  // Those of a server that wait are no longer here. They do not come back to it.
  job_chain withdraw(const job_source& from);

  std::size_t threads_started() const;
  std::size_t waiting() const;

 private:
  using turn = std::variant<std::shared_ptr<job>, const batch*>;

  refusal refusal_of(const job& what) const;
  void start_thread();
  void find_thread();
  void line_up(const batch& together, std::shared_ptr<job>& what);
  void give_turn(const batch* to, batch_line& line);
  void work();
  std::optional<turn> after(const turn& done);
  job_chain take(turn& next);

  worker_group_options limits_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<turn> turns_;
  std::map<const batch*, batch_line> lines_;
  std::size_t waiting_ = 0;       // in all of them
  std::size_t bodies_bytes_ = 0;  // of those that wait or run
  std::size_t idle_ = 0;          // threads without a turn
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace settle::inline v0::http
