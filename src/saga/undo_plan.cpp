#include "saga/undo_plan.hpp"

#include <algorithm>

#include "saga/seams.hpp"

namespace settle::sagas {

// A refusal that follows an unknown attempt says nothing about that attempt.
bool may_have_run(const journal& of, const journal_row& row) {
  if (row.kind == row_kind::done) return true;
  if (row.kind == row_kind::child) return of.about(row.n, row_kind::refused) == nullptr;
  if (row.kind != row_kind::intent) return false;
  const auto* answer = of.answer_of(row.n);
  if (answer != nullptr && answer->kind == row_kind::outcome) return true;
  if (answer != nullptr && answer->input == never_done) return false;
  return doubt_counts_as_done() && (answer == nullptr || of.about(row.n, row_kind::unknown) != nullptr);
}

undo_need need_of(const journal& of, const journal_row& row, const step_lookup& lookup) {
  if (!opens(row) || !may_have_run(of, row) || of.about(row.n, row_kind::undone) != nullptr)
    return undo_need::none;
  if (row.kind == row_kind::child) return undo_need::child;
  const auto facts = lookup(row.name);
  if (!facts) return undo_need::hold;
  const auto* answer = of.answer_of(row.n);
  const bool certain = row.kind == row_kind::done || (answer != nullptr && answer->kind == row_kind::outcome);
  if (facts->has_undo) return certain ? undo_need::with_result : undo_need::without_result;
  return certain ? undo_need::none : undo_need::hold;
}

std::optional<undo_item> next_undo(const journal& of, const step_lookup& lookup) {
  for (auto row = of.rows().rbegin(); row != of.rows().rend(); ++row)
    if (const auto need = need_of(of, *row, lookup); need != undo_need::none) return undo_item{row->n, need};
  return std::nullopt;
}

bool pivot_passed(const journal& of, const step_lookup& lookup, int except) {
  return std::ranges::any_of(of.rows(), [&](const journal_row& row) {
    if (row.n == except || !opens(row) || row.name.empty() || row.kind == row_kind::child ||
        !may_have_run(of, row))
      return false;
    const auto facts = lookup(row.name);
    return facts && facts->pivot;
  });
}

bool anything_ran(const journal& of) {
  return std::ranges::any_of(of.rows(),
                             [&](const journal_row& row) { return opens(row) && may_have_run(of, row); });
}

}  // namespace settle::sagas
