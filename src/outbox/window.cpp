#include "outbox/window.hpp"

#include "base/check.hpp"
#include "outbox/lanes.hpp"

namespace settle::outbox {

std::optional<share_group> next_group(const std::map<int, cursor>& reached, const cursor& head,
                                      const cursor& previous) {
  std::map<cursor, std::uint32_t> masks;
  for (const auto& [share, at] : reached)
    if (at < head) masks[at] |= 1U << share;
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

window_outcome judge(const share_group& group, const sent_window& sent,
                     std::span<const publish_result> results) {
  SETTLE_CHECK(sent.rows.size() == results.size(), "a publisher returns one result per message");
  window_outcome outcome;
  for (int share = 0; share < share_count; ++share)
    if ((group.mask >> share & 1) != 0) outcome.reached[share] = sent.end;
  std::uint32_t stopped = 0;  // bit per share
  for (std::size_t i = 0; i < sent.rows.size(); ++i) {
    const auto& row = sent.rows[i];
    if ((stopped >> row.share & 1) != 0) continue;
    if (results[i].status == publish_status::confirmed) {
      ++outcome.confirmed;
      continue;
    }
    stopped |= 1U << row.share;
    outcome.reached.at(row.share) = {group.from.tick, sent.upto, row.seq - 1};
    const bool destination = results[i].status == publish_status::destination_failed;
    outcome.failures.push_back({row.share, destination, results[i].reason});
  }
  return outcome;
}

}  // namespace settle::outbox
