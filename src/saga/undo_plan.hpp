// Which steps of a journal have to be undone, in which order, and what cannot be. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "saga/journal.hpp"

namespace settle::sagas {

struct step_facts {
  bool has_undo = false;
  bool pivot = false;
};
// Of a step by its name; nothing: this program does not know it.
using step_lookup = std::function<std::optional<step_facts>(const std::string& name)>;

enum class undo_need {
  none,            // it cannot have run, or it has no undo and needs none
  with_result,     // it was done
  without_result,  // it may have been done
  child,           // a saga of its own is to be undone
  hold,            // it may have been done and cannot be undone, or nobody here knows what it is
};

// Whether what row n has opened may have happened.
bool may_have_run(const journal& of, const journal_row& row);

undo_need need_of(const journal& of, const journal_row& row, const step_lookup& lookup);

struct undo_item {
  int n = 0;
  undo_need need{};
};
// The next step to undo, strictly backwards. Nothing: all is undone.
std::optional<undo_item> next_undo(const journal& of, const step_lookup& lookup);

// A step after which nothing is undone was done, or may have been; `except` is not looked at.
bool pivot_passed(const journal& of, const step_lookup& lookup, int except = 0);

// Whether any step may have run at all.
bool anything_ran(const journal& of);

}  // namespace settle::sagas
