#include "saga/calls.hpp"

#include <utility>

#include "base/text.hpp"

namespace settle::sagas {
namespace {

constexpr std::size_t error_bytes_max = 1000;

call_answer found(const call_order& what, call_answer answer, call& via) {
  auto [said, result] = what.step->find(via, what.input);
  switch (said) {
    case finding::done:
      answer.end = call_end::done;
      answer.text = std::move(result);
      break;
    case finding::never:
      answer.end = call_end::refused;
      answer.text = "it was asked about, and was never done";
      break;
    case finding::unknown:
      answer.end = call_end::unknown;
      answer.text = "it was asked about, and nobody knows yet";
      break;
  }
  return answer;
}

call_answer failed(call_answer answer, call_end how, const char* why, duration wait = {}) {
  answer.end = how;
  answer.wait = wait;
  answer.text = storable_text(why, error_bytes_max);
  return answer;
}

}  // namespace

call_answer make_call(const call_order& what) {
  call_answer answer{what.no, what.n, what.op, what.epoch, call_end::done};
  call via(what.facts);
  try {
    if (what.op == call_op::find) return found(what, std::move(answer), via);
    if (what.op == call_op::undo)
      what.step->undo(nullptr, &via, what.input, what.result ? &*what.result : nullptr);
    else
      answer.text = what.step->perform(nullptr, &via, what.input);
    return answer;
  } catch (const step_refused& e) {
    return failed(std::move(answer), call_end::refused, e.what());
  } catch (const call_not_made& e) {
    return failed(std::move(answer), call_end::not_made, e.what(), e.wait());
  } catch (const call_unknown& e) {
    return failed(std::move(answer), call_end::unknown, e.what(), e.wait());
  } catch (const std::exception& e) {
    return failed(std::move(answer), call_end::unknown, e.what());
  } catch (...) {
    return failed(std::move(answer), call_end::unknown, "it threw something that is not a std::exception");
  }
}

call_pool::~call_pool() { finish(); }

void call_pool::send(std::vector<call_order> what) {
  if (what.empty()) return;
  if (threads_max_ == 0) {
    for (const auto& one : what) note(make_call(one));
    return;
  }
  const std::scoped_lock lock(mutex_);
  for (auto& one : what) {
    out_.insert({one.no, one.n, one.op, one.epoch});
    waiting_.push_back(std::move(one));
    const bool more = static_cast<int>(threads_.size()) < threads_max_;
    if (more && static_cast<int>(waiting_.size()) > idle_) threads_.emplace_back([this] { work(); });
  }
  changed_.notify_all();
}

void call_pool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    --idle_;
    if (stopped_) return;
    const auto order = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    auto answer = make_call(order);
    note(std::move(answer));
    lock.lock();
  }
}

void call_pool::note(call_answer what) {
  {
    const std::scoped_lock lock(mutex_);
    const auto out = out_.find({what.no, what.n, what.op, what.epoch});
    if (out != out_.end()) out_.erase(out);
    answers_.push_back(std::move(what));
  }
  answered_();
}

std::vector<call_answer> call_pool::take_answers() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(answers_, {});
}

// An answer that was not taken yet is still to come.
bool call_pool::is_out(std::int64_t no, int n, call_op op, std::int64_t epoch) const {
  const std::scoped_lock lock(mutex_);
  if (out_.contains({no, n, op, epoch})) return true;
  for (const auto& one : answers_)
    if (one.no == no && one.n == n && one.op == op && one.epoch == epoch) return true;
  return false;
}

void call_pool::finish() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  threads_.clear();  // joins
  const std::scoped_lock lock(mutex_);
  for (const auto& one : waiting_) {
    const auto out = out_.find({one.no, one.n, one.op, one.epoch});
    if (out != out_.end()) out_.erase(out);
    answers_.push_back(
        {one.no, one.n, one.op, one.epoch, call_end::not_made, "the process ended before it was sent"});
  }
  waiting_.clear();
  stopped_ = false;
}

}  // namespace settle::sagas
