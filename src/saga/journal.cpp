#include "saga/journal.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace settle::sagas {

namespace {

std::string numbered(const std::string& scope, const std::string& name, int occurrence) {
  auto text = scope + name;
  if (occurrence > 1) text += '#' + std::to_string(occurrence);
  return text;
}

}  // namespace

std::string_view to_string(row_kind of) {
  constexpr std::array<std::string_view, 17> names = {
      "",          "done",  "refused", "intent",     "outcome",     "unknown", "timer",    "waiting", "event",
      "timed_out", "child", "version", "undo_begun", "undo_intent", "undone",  "operated", "held"};
  return names.at(static_cast<std::size_t>(of));
}

bool opens(const journal_row& row) {
  if (row.of) return false;
  switch (row.kind) {
    case row_kind::done:
    case row_kind::refused:
    case row_kind::intent:
    case row_kind::timer:
    case row_kind::waiting:
    case row_kind::child:
    case row_kind::version:
      return true;
    default:
      return false;
  }
}

const journal_row& journal::append(journal_row row) {
  const int n = static_cast<int>(rows_.size()) + 1;
  SETTLE_CHECK(row.n == 0 || row.n == n, "rows of a journal are numbered without gaps");
  row.n = n;
  if (opens(row)) openings_[row.scope].push_back(n);
  if (row.of) about_[*row.of].push_back(n);
  rows_.push_back(std::move(row));
  return rows_.back();
}

const journal_row& journal::at(int n) const { return rows_.at(static_cast<std::size_t>(n - 1)); }

const journal_row* journal::opening(const std::string& scope, std::size_t index) const {
  const auto found = openings_.find(scope);
  if (found == openings_.end() || index >= found->second.size()) return nullptr;
  return &at(found->second[index]);
}

std::map<std::string, std::size_t> journal::openings() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [scope, rows] : openings_) counts[scope] = rows.size();
  return counts;
}

const journal_row* journal::answer_of(int n) const {
  for (const auto kind : {row_kind::outcome, row_kind::refused, row_kind::event, row_kind::timed_out})
    if (const auto* found = about(n, kind)) return found;
  return nullptr;
}

const journal_row* journal::about(int n, row_kind kind) const {
  const auto found = about_.find(n);
  if (found == about_.end()) return nullptr;
  const journal_row* last = nullptr;
  for (const int row : found->second)
    if (at(row).kind == kind) last = &at(row);
  return last;
}

const journal_row* journal::last(row_kind kind) const {
  const auto found =
      std::find_if(rows_.rbegin(), rows_.rend(), [&](const journal_row& row) { return row.kind == kind; });
  return found == rows_.rend() ? nullptr : &*found;
}

std::string journal::outside_name(int n) const {
  const auto& row = at(n);
  int occurrence = 0;
  for (const int other : openings_.at(row.scope)) {
    if (at(other).name == row.name) ++occurrence;
    if (other == n) break;
  }
  return numbered(row.scope, row.name, occurrence);
}

std::string journal::next_outside_name(const std::string& scope, const std::string& name) const {
  int occurrence = 1;
  if (const auto found = openings_.find(scope); found != openings_.end())
    for (const int other : found->second)
      if (at(other).name == name) ++occurrence;
  return numbered(scope, name, occurrence);
}

}  // namespace settle::sagas
