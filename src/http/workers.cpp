#include "http/workers.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace settle::inline v0::http {
namespace {

// Whatever waits is served at once if nobody serves its line. A further turn beside another one has to be
// worth its transaction: by then, half a batch waits, beside what the turns that come will take.
bool is_worth_a_turn(const batch& of, const batch_line& line) {
  if (line.waiting.empty() || line.served_by == of.at_once_max) return false;
  return line.served_by == 0 || 2 * line.waiting.size() >= of.size_max * (1 + 2 * line.coming);
}

}  // namespace

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
    if (waiting_ >= queue_max_) return false;
    ++waiting_;
    const auto* together = what->to.found->together.get();
    if (together == nullptr) {
      turns_.emplace_back(std::move(what));
    } else {
      auto& line = lines_[together];
      line.waiting.push_back(std::move(what));
      if (!is_worth_a_turn(*together, line)) return true;
      give_turn(together, line);
    }
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
  while (arrived_.wait(lock, stop, [&] { return !turns_.empty(); }) && !stop.stop_requested()) {
    const auto next = std::move(turns_.front());
    turns_.pop_front();
    auto all = take(next);
    lock.unlock();
    if (!all.empty()) run(all);
    lock.lock();
    const bool first = done_.empty();
    std::ranges::move(all, std::back_inserter(done_));
    if (const auto* const* together = std::get_if<const batch*>(&next)) {
      auto& line = lines_[*together];
      --line.served_by;
      if (is_worth_a_turn(**together, line)) give_turn(*together, line);
    }
    if (!first) continue;
    lock.unlock();
    answered_();
    lock.lock();
  }
}

void workers::give_turn(const batch* to, batch_line& line) {
  ++line.coming;
  ++line.served_by;
  turns_.emplace_back(to);
}

workers::jobs workers::take(const turn& next) {
  jobs all;
  if (const auto* one = std::get_if<0>(&next)) {
    all.push_back(*one);
  } else {
    const auto* together = std::get<const batch*>(next);
    auto& [waiting, coming, served_by] = lines_[together];
    --coming;
    while (!waiting.empty() && all.size() < together->size_max) {
      all.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
  }
  waiting_ -= all.size();
  return all;
}

void workers::run(const jobs& all) const {
  const auto& to = all.front()->to;
  if (to.found->together) return run_together(all);
  auto& one = *all.front();
  if (!begin(one)) return;
  one.answer = answer_of(to.found->what, one.asked, env_, to.path->pattern);
  end(one);
}

void workers::run_together(const jobs& all) const {
  std::vector<job*> begun;
  std::vector<const request*> asked;
  for (const auto& one : all) {
    if (!begin(*one)) continue;
    begun.push_back(one.get());
    asked.push_back(&one->asked);
  }
  if (begun.empty()) return;
  const auto& to = begun.front()->to;
  auto answers = answers_of(to.found->together->what, asked, env_, to.path->pattern);
  for (std::size_t n = 0; n < begun.size(); ++n) {
    begun[n]->answer = std::move(answers[n]);
    end(*begun[n]);
  }
}

// False: nobody waits for it any more.
bool workers::begin(job& what) const {
  auto expected = job::phase::waiting;
  return what.at.compare_exchange_strong(expected, job::phase::running);
}

void workers::end(job& what) const {
  auto expected = job::phase::running;
  if (what.at.compare_exchange_strong(expected, job::phase::answered)) return;
  env_.log->write(log_level::warning, "http_answer_dropped",
                  {{"route", what.to.path->pattern},
                   {"status", std::to_string(what.answer.status)},
                   {"advice", "the handler returned after its client had been told 503, or was gone"}});
}

}  // namespace settle::inline v0::http
