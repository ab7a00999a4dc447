#include "http/workers.hpp"

#include <algorithm>
#include <utility>

#include "base/if_possible.hpp"

namespace settle::inline v0::http {
namespace {

// Whatever waits is served at once if nobody serves its line. A further turn beside another one has to be
// worth its transaction: by then, half a batch waits, beside what the turns that come will take.
bool is_worth_a_turn(const batch& of, const batch_line& line) {
  if (line.waiting.empty() || line.served_by == of.at_once_max) return false;
  return line.served_by == 0 || 2 * line.waiting.size() >= of.size_max * (1 + 2 * line.coming);
}

}  // namespace

workers::workers(std::size_t threads, std::size_t queue_max, std::size_t batch_max, const environment& env,
                 std::function<void()> answered)
    : queue_max_(queue_max), env_(env), answered_(std::move(answered)) {
  for (std::size_t n = 0; n < threads; ++n) {
    jobs room;
    room.reserve(batch_max);
    threads_.emplace_back(
        [this, room = std::move(room)](const std::stop_token& stop) mutable { work(stop, std::move(room)); });
  }
}

workers::~workers() {
  for (auto& one : threads_) one.request_stop();
  threads_.clear();
}

bool workers::give(std::shared_ptr<job> what) {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_ >= queue_max_) return false;
    const auto* together = what->to.found->together.get();
    const bool has_turn = together != nullptr ? line_up(together, std::move(what))
                                              : (turns_.emplace_back(std::move(what)), true);
    ++waiting_;
    if (!has_turn) return true;
  }
  arrived_.notify_one();
  return true;
}

// True: that is worth a turn, which waits for a worker.
bool workers::line_up(const batch* together, std::shared_ptr<job> what) {
  auto& line = lines_[together];
  line.waiting.push_back(std::move(what));
  if (!is_worth_a_turn(*together, line)) return false;
  try {
    give_turn(together, line);
    return true;
  } catch (...) {
    line.waiting.pop_back();
    throw;
  }
}

std::shared_ptr<job> workers::take_answered() {
  const std::scoped_lock lock(mutex_);
  done_last_ = nullptr;
  return std::exchange(done_, nullptr);
}

void workers::work(const std::stop_token& stop, jobs all) {
  std::unique_lock lock(mutex_);
  std::optional<turn> next;
  while ((next || arrived_.wait(lock, stop, [&] { return !turns_.empty(); })) && !stop.stop_requested()) {
    if (!next) {
      next = std::move(turns_.front());
      turns_.pop_front();
    }
    take(*next, all);
    lock.unlock();
    if (!all.empty()) run(all);
    lock.lock();
    const bool first = note_done(all);
    next = take_next_of(*next);
    if (!first) continue;
    lock.unlock();
    answered_();
    lock.lock();
  }
}

void workers::give_turn(const batch* to, batch_line& line) {
  turns_.emplace_back(to);
  ++line.coming;
  ++line.served_by;
}

// A turn is over. If its line is worth another one, that goes to the end of the queue; where there is no
// memory for it, whoever had this one takes it at once.
std::optional<workers::turn> workers::take_next_of(const turn& done) {
  const auto* const* together = std::get_if<const batch*>(&done);
  if (together == nullptr) return std::nullopt;
  auto& line = lines_.find(*together)->second;
  --line.served_by;
  if (!is_worth_a_turn(**together, line)) return std::nullopt;
  try {
    give_turn(*together, line);
    return std::nullopt;
  } catch (...) {
    ++line.coming;
    ++line.served_by;
    return *together;
  }
}

void workers::take(const turn& next, jobs& into) {
  if (const auto* one = std::get_if<0>(&next)) {
    into.push_back(*one);
  } else {
    const auto* together = std::get<const batch*>(next);
    auto& [waiting, coming, served_by] = lines_.find(together)->second;
    --coming;
    while (!waiting.empty() && into.size() < std::min(together->size_max, into.capacity())) {
      into.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
  }
  waiting_ -= into.size();
}

// True: there was nothing to fetch before.
bool workers::note_done(jobs& all) {
  const bool first = done_ == nullptr;
  for (auto& one : all) {
    auto* const added = one.get();
    (done_last_ == nullptr ? done_ : done_last_->next) = std::move(one);
    done_last_ = added;
  }
  all.clear();
  return first && done_ != nullptr;
}

void workers::run(const jobs& all) const noexcept {
  const auto& to = all.front()->to;
  if (to.found->together) return run_together(all);
  auto& one = *all.front();
  if (!begin(one)) return;
  one.answer = answer_of(to.found->what, one.asked, env_, *to.path);
  end(one);
}

void workers::run_together(const jobs& all) const noexcept {
  std::vector<job*> begun;
  std::vector<const request*> asked;
  try {
    begun.reserve(all.size());
    asked.reserve(all.size());
  } catch (...) {
    return refuse_all(all);
  }
  for (const auto& one : all) {
    if (!begin(*one)) continue;
    begun.push_back(one.get());
    asked.push_back(&one->asked);
  }
  if (begun.empty()) return;
  const auto& to = begun.front()->to;
  auto answers = answers_of(*to.found->together, asked, env_, *to.path);
  for (std::size_t n = 0; n < begun.size(); ++n) {
    begun[n]->answer = n < answers.size() ? std::move(answers[n]) : bare_refusal();
    end(*begun[n]);
  }
}

// Their handler is not even asked.
void workers::refuse_all(const jobs& all) noexcept {
  for (const auto& one : all) {
    if (!begin(*one)) continue;
    one->answer = bare_refusal();
    auto expected = job::phase::running;
    one->at.compare_exchange_strong(expected, job::phase::answered);
  }
}

// False: nobody waits for it any more.
bool workers::begin(job& what) noexcept {
  auto expected = job::phase::waiting;
  return what.at.compare_exchange_strong(expected, job::phase::running);
}

void workers::end(job& what) const noexcept {
  auto expected = job::phase::running;
  if (what.at.compare_exchange_strong(expected, job::phase::answered)) return;
  if_possible([&] {
    env_.log->write(log_level::warning, "http_answer_dropped",
                    {{"route", what.to.path->pattern},
                     {"status", std::to_string(what.answer.status)},
                     {"advice", "the handler returned after its client had been told 503, or was gone"}});
  });
}

}  // namespace settle::inline v0::http
