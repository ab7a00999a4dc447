#include "consume/places.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "base/encoding.hpp"
#include "base/sortable.hpp"

namespace settle::consume {
namespace {

// The relay says it where the sequence alone does not tell: numbers may be committed late, and what a broker
// has refused comes later.
std::optional<std::string> order_of(const message& m) {
  if (const auto said = m.extensions.find("settleplace"); said != m.extensions.end()) return said->second;
  const auto found = m.extensions.find("sequence");
  if (found == m.extensions.end()) return std::nullopt;
  const auto* const end = found->second.data() + found->second.size();
  std::int64_t number = 0;
  const auto [stopped, failed] = std::from_chars(found->second.data(), end, number);
  if (failed != std::errc() || stopped != end || number < 0) return std::nullopt;
  return sortable({number});
}

// Positions that are not numbers sort as their digits do; those of one broker are all of a kind.
std::string order_of(const log_position& at) {
  const auto number = at.number();
  return number ? sortable({*number}) : to_hex(at.bytes());
}

}  // namespace

place place_of(const delivery& of, std::string_view partition) {
  const auto& m = of.content;
  auto order = order_of(m);
  if (!order) return {partition, 0, order_of(of.at)};
  // Two databases may publish under one source; their own ids tell them apart.
  const auto database = m.extensions.find("settledatabase");
  return {database == m.extensions.end() ? m.source : database->second, lane_of(m.key, m.id),
          std::move(*order)};
}

void highest_places::add(int lane, std::string_view order) {
  auto& at = found_at_.at(static_cast<std::size_t>(lane));
  if (at < 0) {
    at = static_cast<std::int16_t>(found_.size());
    found_.emplace_back(lane, order);
  } else {
    auto& highest = found_[static_cast<std::size_t>(at)].second;
    highest = std::max(highest, order);
  }
}

void batch_places::add(std::string_view log, const log_position& position, const place& at) {
  const origin from(log, at.source);
  if (last_places_ == nullptr || from != last_) {
    last_part_ = &by_log_[log];
    last_places_ = &last_part_->by_source[at.source];
    last_ = from;
  }
  last_part_->position = std::max(last_part_->position, position);
  if (!at.order.empty()) last_places_->add(at.lane, at.order);
}

std::vector<log_places> batch_places::take() {
  std::vector<log_places> logs;
  for (auto& [log, of] : by_log_) {
    auto& made = logs.emplace_back(log_places{log, of.position.bytes()});
    for (auto& [source, highest] : of.by_source) made.sources.push_back({source, std::move(highest).take()});
  }
  return logs;
}

}  // namespace settle::consume
