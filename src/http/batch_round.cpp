#include "http/batch_round.hpp"

#include <stdexcept>
#include <utility>

namespace settle::inline v0::http {
namespace {

// Nothing else tells a middleware's call from another one's: it may pass on another request than it was
// given.
thread_local batch_round* current = nullptr;

}  // namespace

batch_round::batch_round(const batch& of, std::span<const request* const> asked, const environment& env,
                         const path_routes& on)
    : of_(of), asked_(asked), env_(env), on_(on), answers_(asked.size()) {
  joined_.reserve(asked.size());
}

std::vector<response> batch_round::run() noexcept {
  auto* const before = std::exchange(current, this);
  open(0);
  current = before;
  return std::move(answers_);
}

// The requests from this one on.
void batch_round::open(std::size_t from) noexcept {
  if (from == asked_.size()) return ask();
  opened_ = from;
  answers_[from] = answer_of(of_.each, *asked_[from], env_, on_);
  if (called_on_ <= from) open(from + 1);
}

response batch_round::answer(const batch& of, const request& asked) {
  if (current != nullptr && &current->of_ == &of && !current->asked_handler_) return current->join(asked);
  const request* const alone = &asked;
  return std::move(of.what({&alone, 1}).at(0));
}

// Until the handler has been asked, only the middleware of the request opened last can call.
response batch_round::join(const request& asked) {
  const auto place = joined_.size();
  joined_.push_back(&asked);
  called_on_ = opened_ + 1;
  open(opened_ + 1);
  if (failure_) std::rethrow_exception(failure_);
  return std::move(handled_[place]);
}

void batch_round::ask() noexcept {
  asked_handler_ = true;
  if (joined_.empty()) return;
  try {
    handled_ = of_.what(joined_);
    if (handled_.size() != joined_.size())
      throw std::logic_error("a batch handler gives an answer for each request");
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace settle::inline v0::http
