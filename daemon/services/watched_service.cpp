#include "daemon/services/watched_service.hpp"

#include <fmt/format.h>

#include "daemon/services/plain_reason.hpp"
#include "settle/error.hpp"

namespace settle::daemon {

bool watched_service::run_once(std::stop_token cancel) {
  try {
    const bool more = inner_.run_once(cancel);
    note_success();
    return more;
  } catch (const error& e) {
    note_failure(plain_reason(e));
    throw;
  } catch (...) {
    note_failure("its log says why");
    throw;
  }
}

void watched_service::note_failure(std::string why) noexcept {
  const std::scoped_lock lock(mutex_);
  failure_ = std::move(why);
  fails_ = true;
}

void watched_service::note_success() {
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    first = !last_success_;
    last_success_ = env().now();
    fails_ = false;
  }
  if (first && first_round_) first_round_();
}

std::optional<std::string> watched_service::trouble(duration silence_max) const {
  const std::scoped_lock lock(mutex_);
  if (fails_) return fmt::format("the {} fails: {}", name(), failure_);
  if (!last_success_) return fmt::format("the {} has not finished its first round", name());
  const auto silence = env().now() - *last_success_;
  if (silence <= silence_max) return std::nullopt;
  return fmt::format("the {} has been at one round for {} s", name(), silence / std::chrono::seconds(1));
}

}  // namespace settle::daemon
