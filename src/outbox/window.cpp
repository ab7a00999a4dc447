#include "outbox/window.hpp"

#include "base/check.hpp"
#include "outbox/lanes.hpp"

namespace settle::outbox {

std::optional<share_group> next_group(const std::map<int, std::int64_t>& scanned, std::int64_t upto,
                                      std::int64_t previous) {
  std::map<std::int64_t, std::uint32_t> masks;  // by position
  for (const auto& [share, position] : scanned)
    if (position < upto) masks[position] |= 1U << share;
  if (masks.empty()) return std::nullopt;
  auto next = masks.upper_bound(previous);
  if (next == masks.end()) next = masks.begin();
  return share_group{next->first, next->second};
}

std::int64_t window_end(std::span<const measured_row> rows, std::size_t rows_max, std::size_t bytes_max,
                        std::int64_t upto) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bytes += rows[i].bytes;
    const bool first = i == 0;
    if (!first && bytes > static_cast<std::int64_t>(bytes_max)) return rows[i - 1].seq;
  }
  return rows.size() < rows_max ? upto : rows.back().seq;
}

window_outcome judge(const share_group& group, std::int64_t window_end, std::span<const sent_row> rows,
                     std::span<const publish_result> results) {
  SETTLE_CHECK(rows.size() == results.size(), "a publisher returns one result per message");
  window_outcome outcome;
  for (int share = 0; share < share_count; ++share)
    if ((group.mask >> share & 1) != 0) outcome.positions[share] = window_end;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& position = outcome.positions.at(rows[i].share);
    const bool stopped = position < rows[i].seq;
    if (stopped) continue;
    if (results[i].status == publish_status::confirmed) {
      ++outcome.confirmed;
      continue;
    }
    position = rows[i].seq - 1;
    const bool destination = results[i].status == publish_status::destination_failed;
    outcome.failures.push_back({rows[i].share, destination, results[i].reason});
  }
  return outcome;
}

}  // namespace settle::outbox
