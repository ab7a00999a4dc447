#include "consume/claim_groups.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "queries/consume.hpp"

namespace settle::consume {

std::vector<claim_group> claim_groups_of(batch messages, std::span<const std::string_view> keys,
                                         std::vector<std::size_t> wanted) {
  if (wanted.empty()) return {};
  const auto kind = [&](std::size_t i) {
    const auto& m = messages[i]->what();
    return std::pair<std::string_view, std::string_view>(m.topic, m.type);
  };
  const auto by_key = [&](std::size_t i) { return std::pair(keys[i], i); };
  if (std::ranges::all_of(wanted, [&](std::size_t i) { return kind(i) == kind(wanted.front()); })) {
    if (!std::ranges::is_sorted(wanted, {}, by_key)) std::ranges::sort(wanted, {}, by_key);
    return {std::move(wanted)};
  }
  std::ranges::sort(wanted, {}, [&](std::size_t i) { return std::tuple(kind(i), by_key(i)); });
  std::vector<claim_group> groups;
  for (const auto i : wanted) {
    if (groups.empty() || kind(groups.back().front()) != kind(i)) groups.emplace_back();
    groups.back().push_back(i);
  }
  return groups;
}

bool judge_claims(const claim_group& group, std::span<const std::string_view> keys, const result& claimed,
                  std::vector<verdict>& what) {
  const bool all = claimed.affected() == std::ssize(group);
  if (!all && claimed.affected() > 0 && claimed.empty()) return false;
  std::set<std::string, std::less<>> fresh;
  if (!all)
    for (std::size_t i = 0; i < claimed.size(); ++i)
      fresh.insert(claimed[i][queries::consume::claim_columns::message_id].text());
  for (const auto i : group) {
    const auto found = fresh.find(keys[i]);
    what[i] = all || found != fresh.end() ? verdict::run : verdict::duplicate;
    if (found != fresh.end()) fresh.erase(found);
  }
  return true;
}

}  // namespace settle::consume
