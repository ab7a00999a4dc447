// Remote steps under way: what is asked for, and what came of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "settle/saga_step.hpp"

namespace settle::sagas {

enum class call_op { perform, undo, find };

// One attempt that is to be made.
struct call_order {
  std::int64_t no = 0;
  int n = 0;  // the row of the journal that it is for
  call_op op{};
  std::int64_t epoch = 0;
  call::facts facts = {};
  detail::step_pointer step = {};
  std::string input = {};
  std::optional<std::string> result = {};  // of the step, for its undo
};

enum class call_end {
  done,
  refused,   // it was not done, and never will be
  not_made,  // it was certainly not done this time
  unknown,
};

struct call_answer {
  std::int64_t no = 0;
  int n = 0;
  call_op op{};
  std::int64_t epoch = 0;
  call_end end{};
  std::string text = {};  // the result, or why not
  duration wait = {};     // at least, before it is tried again
};

// Makes one attempt, on whatever thread.
call_answer make_call(const call_order& what);

// Threads that make calls, one attempt each at a time. Without threads they are made when they are asked for.
class call_pool {
 public:
  call_pool(int threads, std::function<void()> answered)
      : threads_max_(threads), answered_(std::move(answered)) {}
  ~call_pool();
  call_pool(const call_pool&) = delete;
  call_pool& operator=(const call_pool&) = delete;

  void send(std::vector<call_order> what);
  std::vector<call_answer> take_answers();
  // Whether its answer is still to come.
  bool is_out(std::int64_t no, int n, call_op op, std::int64_t epoch) const;
  // Waits for those that have begun; the others are answered as not made.
  void finish();

 private:
  using key = std::tuple<std::int64_t, int, call_op, std::int64_t>;
  void work();
  void note(call_answer what);

  const int threads_max_;
  const std::function<void()> answered_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<call_order> waiting_;
  std::multiset<key> out_;
  std::vector<call_answer> answers_;
  std::vector<std::jthread> threads_;
  int idle_ = 0;
  bool stopped_ = false;
};

}  // namespace settle::sagas
