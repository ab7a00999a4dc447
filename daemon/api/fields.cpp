#include "daemon/api/fields.hpp"

#include <algorithm>

#include "base/nearest_name.hpp"
#include "base/text.hpp"

namespace settle::daemon {
namespace {

constexpr std::size_t shown_bytes_max = 64;  // of a name that somebody has sent

}  // namespace

const boost::json::value* fields::find(std::string_view name) {
  constexpr std::size_t usual_count = 8;
  if (asked_.empty()) asked_.reserve(usual_count);
  asked_.emplace_back(name);
  return from_.if_contains(boost::json::string_view(name.data(), name.size()));
}

bool fields::has(std::string_view name) const {
  return from_.contains(boost::json::string_view(name.data(), name.size()));
}

void fields::refuse(std::string_view name, std::string_view why) const {
  throw bad_field(path_ + std::string(name), why);
}

std::string_view fields::text(std::string_view name) {
  const auto* found = find(name);
  if (found == nullptr) refuse(name, "is missing");
  if (!found->is_string()) refuse(name, "is a text");
  return {found->get_string().data(), found->get_string().size()};
}

std::string_view fields::text_or(std::string_view name, std::string_view otherwise) {
  const auto* found = find(name);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) refuse(name, "is a text");
  return {found->get_string().data(), found->get_string().size()};
}

std::int64_t fields::integer_or(std::string_view name, std::int64_t otherwise) {
  const auto* found = find(name);
  if (found == nullptr) return otherwise;
  if (!found->is_int64()) refuse(name, "is a whole number");
  return found->get_int64();
}

const boost::json::object& fields::object(std::string_view name) {
  const auto* found = find(name);
  if (found == nullptr) refuse(name, "is missing");
  if (!found->is_object()) refuse(name, "is an object");
  return found->get_object();
}

const boost::json::array& fields::array_or_none(std::string_view name) {
  static const boost::json::array none;
  const auto* found = find(name);
  if (found == nullptr) return none;
  if (!found->is_array()) refuse(name, "is a list");
  return found->get_array();
}

void fields::expect_no_others() const {
  for (const auto& member : from_) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    if (name.size() > shown_bytes_max) refuse(one_line(name, shown_bytes_max) + "…", "is not known here");
    const std::vector<std::string> known(asked_.begin(), asked_.end());
    refuse(name, "is not known here; did you mean " + path_ + nearest_name(name, known) + "?");
  }
}

}  // namespace settle::daemon
