#include "outbox/window.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "outbox/lanes.hpp"
#include "settle/error.hpp"

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

void check_answers(std::size_t messages, std::size_t results) {
  if (messages == results) return;
  throw error(errc::invalid_argument, "the publisher answered " + std::to_string(messages) +
                                          " messages with " + std::to_string(results) +
                                          " results: publish() returns one per message, in order");
}

// Of a message that was not confirmed.
static fate fate_of(publish_status status) {
  if (status == publish_status::message_rejected) return fate::rejected;
  return status == publish_status::topic_unavailable ? fate::unwanted : fate::unknown;
}

std::vector<fate> fates_of(std::span<const message> sent, std::span<const publish_result> results) {
  SETTLE_CHECK(sent.size() == results.size(), "a publisher returns one result per message");
  std::vector<fate> fates(sent.size(), fate::confirmed);
  // By topic and key, as its first message did.
  std::map<std::pair<std::string_view, std::string_view>, fate> failed;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (results[i].status == publish_status::confirmed) continue;
    const auto own = fate_of(results[i].status);
    const auto [first, is_first] = failed.try_emplace({sent[i].topic, sent[i].key}, own);
    const bool alone = is_first || sent[i].key.empty();
    const bool is_behind = first->second == fate::rejected || (first->second == own && own == fate::unwanted);
    fates[i] = alone ? own : is_behind ? fate::behind : fate::unknown;
  }
  return fates;
}

window_outcome judge(const share_group& group, const judged_window& done) {
  SETTLE_CHECK(done.rows.size() == done.fates.size(), "every row of a window has a fate");
  window_outcome outcome;
  for (int share = 0; share < share_count; ++share)
    if ((group.mask >> share & 1) != 0) outcome.reached[share] = done.end;
  std::uint32_t stopped = 0;  // bit per share
  for (std::size_t i = 0; i < done.rows.size(); ++i) {
    const auto& row = done.rows[i];
    if ((stopped >> row.share & 1) != 0) continue;
    switch (done.fates[i]) {
      case fate::confirmed:
        ++outcome.confirmed;
        break;
      case fate::rejected:
      case fate::unwanted:
      case fate::behind:
      case fate::delayed:
        outcome.to_hold.push_back(i);
        break;
      case fate::unknown:
        stopped |= 1U << row.share;
        outcome.stopped[row.share] = i;
        outcome.reached.at(row.share) = {group.from.tick, done.upto, row.seq - 1};
    }
  }
  return outcome;
}

}  // namespace settle::outbox
