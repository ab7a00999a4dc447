// The relay's decisions, pure: which part of the outbox to read next, and how far each share has come
// after a publish.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outbox/cursor.hpp"
#include "settle/driver/broker.hpp"
#include "settle/environment.hpp"

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

// A publisher of the user's that does not do what settle/broker.hpp says: nobody knows which message an
// answer is for. Throws invalid_argument.
void check_answers(std::size_t messages, std::size_t results);

// What became of a message.
enum class fate {
  confirmed,
  unknown,   // the destination failed: it may be stored
  rejected,  // and not stored
  unwanted,  // and not stored: nobody takes its topic now
  behind,    // not stored either, because an earlier one of its key was rejected or unwanted
  delayed,   // not sent: its time has not come
};

// Of a key that was rejected only the first message counts as such.
std::vector<fate> fates_of(std::span<const message> sent, std::span<const publish_result> results);

struct window_row {
  std::int64_t seq = 0;
  int share = 0;
  std::optional<timestamp> deliver_at = {};
};

// A window, and what was done with its rows.
struct judged_window {
  cursor end;
  std::int64_t upto = 0;
  std::span<const window_row> rows;
  std::span<const fate> fates;
};

struct window_outcome {
  std::map<int, cursor> reached;       // by every share in the group
  std::map<int, std::size_t> stopped;  // shares that did not get to the end, and the row that they stopped at
  std::vector<std::size_t> to_hold;    // rows that were passed without being stored
  std::int64_t confirmed = 0;          // rows that no share has to send again
};

// A share moves to the window's end, or stops just before its first row of which nobody knows whether it is
// stored. Rejected rows, and those behind them, do not stop it: they are to be held elsewhere.
window_outcome judge(const share_group& group, const judged_window& done);

}  // namespace settle::outbox
