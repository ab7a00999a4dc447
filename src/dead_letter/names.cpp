// Reasons and statuses as they are stored and shown.
#include <array>
#include <utility>

#include "settle/dead_letter.hpp"

namespace settle::inline v0 {
namespace {

template <class Value>
using name_of = std::pair<Value, std::string_view>;

constexpr std::array reasons{
    name_of<dead_letter_reason>{dead_letter_reason::permanent, "permanent"},
    name_of<dead_letter_reason>{dead_letter_reason::exhausted, "exhausted"},
    name_of<dead_letter_reason>{dead_letter_reason::too_old, "too_old"},
    name_of<dead_letter_reason>{dead_letter_reason::crashed_process, "crashed_process"},
    name_of<dead_letter_reason>{dead_letter_reason::beyond_dedup_horizon, "beyond_dedup_horizon"},
    name_of<dead_letter_reason>{dead_letter_reason::imported, "imported"},
};

constexpr std::array statuses{
    name_of<dead_letter_status>{dead_letter_status::fresh, "NEW"},
    name_of<dead_letter_status>{dead_letter_status::replaying, "REPLAYING"},
    name_of<dead_letter_status>{dead_letter_status::replayed, "REPLAYED"},
    name_of<dead_letter_status>{dead_letter_status::discard_requested, "DISCARD_REQUESTED"},
    name_of<dead_letter_status>{dead_letter_status::discarded, "DISCARDED"},
};

std::string_view name_in(const auto& table, auto of) {
  for (const auto& [value, name] : table)
    if (value == of) return name;
  return {};
}

template <class Value>
std::optional<Value> value_in(const auto& table, std::string_view text) {
  for (const auto& [value, name] : table)
    if (name == text) return value;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(dead_letter_reason of) { return name_in(reasons, of); }
std::string_view to_string(dead_letter_status of) { return name_in(statuses, of); }

std::optional<dead_letter_reason> dead_letter_reason_from(std::string_view text) {
  return value_in<dead_letter_reason>(reasons, text);
}

std::optional<dead_letter_status> dead_letter_status_from(std::string_view text) {
  return value_in<dead_letter_status>(statuses, text);
}

}  // namespace settle::inline v0
