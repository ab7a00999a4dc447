#include "retry/history.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "base/text.hpp"

namespace settle::retry {
namespace {

failure_class failure_class_from(std::string_view text) {
  for (const auto one : {failure_class::outage, failure_class::transient, failure_class::permanent})
    if (to_string(one) == text) return one;
  return failure_class::poison;
}

}  // namespace

std::string history_text(const std::vector<failed_attempt>& history) {
  boost::json::array all;
  const auto kept = std::min(history.size(), attempts_kept_max);
  for (auto one = history.end() - static_cast<std::ptrdiff_t>(kept); one != history.end(); ++one)
    all.push_back(boost::json::object{{"at", one->at.time_since_epoch().count()},
                                      {"class", std::string(to_string(one->why))},
                                      {"error", storable_text(one->error, attempt_error_bytes_max)}});
  return boost::json::serialize(all);
}

std::vector<failed_attempt> read_history(std::string_view text) {
  boost::system::error_code failed;
  const auto parsed = boost::json::parse({text.data(), text.size()}, failed);
  std::vector<failed_attempt> history;
  if (failed || !parsed.is_array()) return history;
  for (const auto& one : parsed.get_array()) {
    const auto* row = one.if_object();
    const auto* at = row != nullptr ? row->if_contains("at") : nullptr;
    const auto* why = row != nullptr ? row->if_contains("class") : nullptr;
    const auto* error = row != nullptr ? row->if_contains("error") : nullptr;
    if (at == nullptr || !at->is_int64() || why == nullptr || !why->is_string() || error == nullptr ||
        !error->is_string())
      continue;
    history.push_back({timestamp(duration(at->get_int64())), failure_class_from(why->get_string()),
                       std::string(error->get_string())});
  }
  return history;
}

}  // namespace settle::retry
