#include "lock/waiting_line.hpp"

namespace settle::locking {

waiting_line::place::place(waiting_line& in, const std::string& name) : in_(in), name_(name) {
  const std::scoped_lock lock(in_.mutex_);
  number_ = ++in_.last_number_;
  auto& own = in_.lines_[name_];
  own.numbers.push_back(number_);
  seen_ = own.releases;
}

waiting_line::place::~place() {
  const std::scoped_lock lock(in_.mutex_);
  const auto own = in_.lines_.find(name_);
  std::erase(own->second.numbers, number_);
  if (own->second.numbers.empty())
    in_.lines_.erase(own);
  else
    in_.changed_.notify_all();
}

bool waiting_line::place::await_first(steady::time_point until, const std::stop_token& stop) {
  std::unique_lock lock(in_.mutex_);
  return in_.changed_.wait_until(lock, stop, until,
                                 [&] { return in_.lines_.at(name_).numbers.front() == number_; });
}

void waiting_line::place::doze(duration at_most, const std::stop_token& stop) {
  std::unique_lock lock(in_.mutex_);
  in_.changed_.wait_for(lock, stop, at_most, [&] { return in_.lines_.at(name_).releases != seen_; });
  seen_ = in_.lines_.at(name_).releases;
}

void waiting_line::released(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto waiting = lines_.find(name);
  if (waiting == lines_.end()) return;
  ++waiting->second.releases;
  changed_.notify_all();
}

}  // namespace settle::locking
