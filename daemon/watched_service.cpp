#include "daemon/watched_service.hpp"

#include <fmt/format.h>

namespace settle::daemon {

bool watched_service::run_once(std::stop_token cancel) {
  try {
    const bool more = inner_.run_once(cancel);
    note_success();
    return more;
  } catch (const std::exception& e) {
    const std::scoped_lock lock(mutex_);
    failure_ = e.what();
    throw;
  }
}

void watched_service::note_success() {
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    first = !last_success_;
    last_success_ = env().now();
    failure_.clear();
  }
  if (first && first_round_) first_round_();
}

std::optional<std::string> watched_service::trouble(duration silence_max) const {
  const std::scoped_lock lock(mutex_);
  if (!failure_.empty()) return fmt::format("the {} fails: {}", name(), failure_);
  if (!last_success_) return fmt::format("the {} has not finished its first round", name());
  const auto silence = env().now() - *last_success_;
  if (silence <= silence_max) return std::nullopt;
  return fmt::format("the {} has been at one round for {} s", name(), silence / std::chrono::seconds(1));
}

}  // namespace settle::daemon
