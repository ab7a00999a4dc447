#include "http/routing.hpp"

#include <algorithm>
#include <utility>

namespace settle::inline v0::http {

retired_routers::~retired_routers() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  came_.notify_one();
  thread_.join();
}

void retired_routers::start() {
  const std::scoped_lock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void retired_routers::take(entry* one) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (thread_.joinable()) {
      one->next = std::exchange(first_, one);
      one = nullptr;
    }
  }
  came_.notify_one();
  delete one;
}

void retired_routers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    came_.wait(lock, [&] { return ending_ || first_ != nullptr; });
    if (first_ == nullptr) return;
    std::unique_ptr<entry> one(std::exchange(first_, first_->next));
    lock.unlock();
    one.reset();
    lock.lock();
  }
}

routing::routing(router first) : current_(prepared(first)), adopted_(current_) {}

routing::~routing() {
  adopted_.reset();
  current_.reset();
}

void routing::replace(router next) {
  retired_.start();
  table replaced;  // let go of when nothing is locked
  const std::scoped_lock lock(mutex_);
  replaced = std::exchange(current_, prepared(next));
  ++version_;
}

routing::table routing::prepared(router& next) {
  next.routes().number_paths(numbers_);
  note_groups(next.routes());
  auto entry = std::make_unique<retired_routers::entry>();
  entry->routes = std::move(next);
  const auto* const routes = &entry->routes.routes();
  const std::shared_ptr<retired_routers::entry> kept(
      entry.release(), [this](retired_routers::entry* one) { retired_.take(one); });
  return {kept, routes};
}

void routing::note_groups(const router::table& of) {
  std::erase_if(groups_, [](const auto& one) { return one.expired(); });
  for (const auto& fresh : of.groups())
    if (std::ranges::none_of(groups_, [&](const auto& one) { return one.lock() == fresh; }))
      groups_.push_back(fresh);
}

void routing::adopt() noexcept {
  table before;  // likewise
  const std::scoped_lock lock(mutex_);
  before = std::exchange(adopted_, current_);
  adopted_version_ = version_;
}

std::vector<std::shared_ptr<worker_group>> routing::groups() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<worker_group>> all;
  for (const auto& one : groups_)
    if (auto there = one.lock()) all.push_back(std::move(there));
  return all;
}

}  // namespace settle::inline v0::http
