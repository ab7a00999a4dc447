// The relay's decisions, pure: which part of the outbox to read next, and how far each share has come
// after a publish.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outbox/cursor.hpp"
#include "settle/broker.hpp"

namespace settle::outbox {

// Shares that stand at the same position are read together: one query and one batch for all of them.
struct share_group {
  cursor from;             // everything up to it is done
  std::uint32_t mask = 0;  // bit per share
  friend bool operator==(const share_group&, const share_group&) = default;
};

// The next group behind `head`, going round: the first one above `previous`, where the last window ended.
// So a share with a long way to go does not keep the others waiting.
std::optional<share_group> next_group(const std::map<int, cursor>& reached, const cursor& head,
                                      const cursor& previous);

struct measured_row {
  std::int64_t seq = 0;
  std::int64_t bytes = 0;
};

// How far one batch goes: to the row that fills it, or to `upto` if everything fits.
// `rows` holds at most rows_max rows; a full set means that there may be more behind it.
std::int64_t window_end(std::span<const measured_row> rows, std::size_t rows_max, std::size_t bytes_max,
                        std::int64_t upto);

struct sent_row {
  std::int64_t seq = 0;
  int share = 0;
};

struct share_failure {
  int share = 0;
  bool destination = false;  // the destination's fault, not the message's
  std::string reason;
};

struct window_outcome {
  std::map<int, cursor> reached;        // by every share in the group
  std::vector<share_failure> failures;  // at most one per share: its first
  std::int64_t confirmed = 0;           // rows that no share has to send again
};

// A window that was sent.
struct sent_window {
  cursor end;
  std::int64_t upto = 0;
  std::span<const sent_row> rows;
};

// A share moves to the window's end, or stops just before its first row that was not confirmed.
window_outcome judge(const share_group& group, const sent_window& sent,
                     std::span<const publish_result> results);

}  // namespace settle::outbox
