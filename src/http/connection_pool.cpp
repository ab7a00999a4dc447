#include "http/connection_pool.hpp"

#include <algorithm>

namespace settle::inline v0::http {

// Closing may have to say goodbye, so it is done without the lock: `closed` is destroyed after it.
connection_pool::lease connection_pool::take(const std::string& origin, const time_limit& limit) {
  closing closed;
  std::unique_lock lock(mutex_);
  auto& of = origins_[origin];
  const auto is_there = [&] {
    drop_old(of, closed);
    return !of.idle.empty() || may_open(of, closed);
  };
  ++of.wanted;
  const bool found = freed_.wait_until(lock, limit.stop(), limit.until(), is_there);
  --of.wanted;
  if (!found) {
    forget_unused(origin);
    return {};
  }
  ++of.in_use;
  if (of.idle.empty()) {
    ++open_;
    return {*this, origin, nullptr};
  }
  auto line = std::move(of.idle.back().line);
  of.idle.pop_back();
  return {*this, origin, std::move(line)};
}

// One that is kept elsewhere makes room: the one of that host that was used longest ago.
bool connection_pool::may_open(lines& of, closing& closed) {
  if (of.in_use + of.idle.size() >= limits_.per_origin_max) return false;
  if (open_ < limits_.total_max) return true;
  const auto keeps = [](const auto& one) { return !one.second.idle.empty(); };
  const auto found = std::ranges::find_if(origins_, keeps);
  if (found == origins_.end()) return false;
  auto& idle = found->second.idle;
  closed.push_back(std::move(idle.front().line));
  idle.erase(idle.begin());
  --open_;
  forget_unused(found->first);
  return true;
}

void connection_pool::drop_old(lines& of, closing& closed) {
  const auto oldest = steady::now() - limits_.idle_time_max;
  const auto first_young =
      std::ranges::find_if(of.idle, [&](const idle_line& one) { return one.since > oldest; });
  for (auto one = of.idle.begin(); one != first_young; ++one) closed.push_back(std::move(one->line));
  open_ -= static_cast<std::size_t>(first_young - of.idle.begin());
  of.idle.erase(of.idle.begin(), first_young);
}

void connection_pool::give_back(const std::string& origin, std::unique_ptr<client_line> line) {
  closing closed;
  const std::scoped_lock lock(mutex_);
  auto& of = origins_[origin];
  --of.in_use;
  drop_old(of, closed);
  if (line)
    of.idle.push_back({std::move(line), steady::now()});
  else
    --open_;
  forget_unused(origin);
  freed_.notify_all();
}

void connection_pool::forget_unused(const std::string& origin) {
  const auto found = origins_.find(origin);
  const auto& of = found->second;
  if (of.in_use == 0 && of.wanted == 0 && of.idle.empty()) origins_.erase(found);
}

std::size_t connection_pool::open() const {
  const std::scoped_lock lock(mutex_);
  return open_;
}

void connection_pool::close_idle() {
  closing closed;
  const std::scoped_lock lock(mutex_);
  for (auto& [origin, of] : origins_) {
    open_ -= of.idle.size();
    for (auto& one : of.idle) closed.push_back(std::move(one.line));
    of.idle.clear();
  }
  std::erase_if(origins_, [](const auto& one) { return one.second.in_use == 0 && one.second.wanted == 0; });
  freed_.notify_all();
}

}  // namespace settle::inline v0::http
