#include "daemon/services/store_check.hpp"

#include <fmt/format.h>

#include "daemon/services/plain_reason.hpp"

namespace settle::daemon {
namespace {

std::string name_of_trouble(const std::string& store) { return "readiness of " + store; }

}  // namespace

// The migration state is what a store can say without touching anybody's data; it also notices a file that
// a newer version has migrated meanwhile.
std::string unanswered_by(database& store, std::span<const sql::migration> needed, troubles& known) try {
  const auto state = sql::read_migration_state(store, needed);
  is_answered(store.name(), known);
  if (state.applied == state.known) return {};
  return fmt::format("{} is at schema version {}, this build needs {}", store.name(), state.applied,
                     state.known);
} catch (const std::exception& e) {
  return unanswered(store.name(), e, store.env(), known);
}

void is_answered(const std::string& store, troubles& known) { known.is_over(name_of_trouble(store)); }

// The statement that failed is for the log.
std::string unanswered(const std::string& store, const std::exception& e, const environment& env,
                       troubles& known) {
  if (known.is_news(name_of_trouble(store), env.now()))
    env.log->write(log_level::warning, "readiness_failed", {{"store", store}, {"error", e.what()}});
  const auto* ours = dynamic_cast<const error*>(&e);
  return fmt::format("{}: {}", store, ours != nullptr ? plain_reason(*ours) : "the log says why");
}

}  // namespace settle::daemon
