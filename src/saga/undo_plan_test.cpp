#include "saga/undo_plan.hpp"

#include <gtest/gtest.h>

namespace settle::sagas {

inline void PrintTo(undo_need of, std::ostream* out) {
  constexpr const char* names[] = {"none", "with_result", "without_result", "child", "hold"};
  *out << names[static_cast<int>(of)];
}

namespace {

// Names say what a step has.
std::optional<step_facts> facts(const std::string& name) {
  if (name.starts_with("gone")) return std::nullopt;
  return step_facts{.has_undo = name.starts_with("undoable"), .pivot = name.ends_with("pivot")};
}

undo_need need(const journal& of, int n) { return need_of(of, of.at(n), facts); }

struct undo_plans : ::testing::Test {
  int local(const std::string& name) { return j.append({.kind = row_kind::done, .name = name}).n; }
  int remote(const std::string& name) { return j.append({.kind = row_kind::intent, .name = name}).n; }
  void add(row_kind kind, int of) { j.append({.kind = kind, .of = of}); }
  journal j;
};

// Proves S2
TEST_F(undo_plans, undo_what_was_done_and_has_an_undo) {
  EXPECT_EQ(need(j, local("undoable")), undo_need::with_result);
  EXPECT_EQ(need(j, local("plain")), undo_need::none);
  EXPECT_EQ(need(j, j.append({.kind = row_kind::refused, .name = "undoable"}).n), undo_need::none);
  const auto asked = remote("undoable");
  add(row_kind::outcome, asked);
  EXPECT_EQ(need(j, asked), undo_need::with_result);
  EXPECT_EQ(need(j, j.append({.kind = row_kind::timer}).n), undo_need::none);
}

// Proves S2
TEST_F(undo_plans, undo_children_unless_they_have_ended_with_nothing_done) {
  const auto child = j.append({.kind = row_kind::child, .name = "undoable pivot"}).n;
  EXPECT_EQ(need(j, child), undo_need::child) << "it is under way, or has completed";
  EXPECT_FALSE(pivot_passed(j, facts)) << "its name is that of a saga, not of a step";
  const auto failed = j.append({.kind = row_kind::child, .name = "other"}).n;
  add(row_kind::refused, failed);
  EXPECT_EQ(need(j, failed), undo_need::none) << "it has undone itself";
  add(row_kind::undone, child);
  EXPECT_EQ(need(j, child), undo_need::none);
}

// Proves S2
TEST_F(undo_plans, undo_what_may_have_been_done_without_a_result_or_hold) {
  EXPECT_EQ(need(j, remote("undoable")), undo_need::without_result) << "an intent alone";
  EXPECT_EQ(need(j, remote("plain")), undo_need::hold);
  const auto refused = remote("undoable");
  add(row_kind::refused, refused);
  EXPECT_EQ(need(j, refused), undo_need::none) << "certainly not done";
  for (const auto* name : {"undoable", "plain"}) {
    const auto doubtful = remote(name);
    add(row_kind::unknown, doubtful);
    add(row_kind::refused, doubtful);
    EXPECT_EQ(need(j, doubtful), name[0] == 'u' ? undo_need::without_result : undo_need::hold)
        << "a refusal after an unknown attempt says nothing about that";
  }
  const auto barred = remote("plain");
  add(row_kind::unknown, barred);
  j.append({.kind = row_kind::refused, .input = std::string(never_done), .of = barred});
  EXPECT_EQ(need(j, barred), undo_need::none) << "who was asked has ended the doubt";
}

// Proves S2
TEST_F(undo_plans, hold_what_this_program_does_not_know) {
  EXPECT_EQ(need(j, local("gone")), undo_need::hold);
  const auto refused = remote("gone");
  add(row_kind::refused, refused);
  EXPECT_EQ(need(j, refused), undo_need::none);
}

// Proves S2
TEST_F(undo_plans, go_strictly_backwards_until_all_is_undone) {
  const auto first = local("undoable 1");
  local("plain");
  const auto second = remote("undoable 2");
  EXPECT_EQ(next_undo(j, facts)->n, second);
  add(row_kind::undone, second);
  EXPECT_EQ(next_undo(j, facts)->n, first);
  add(row_kind::undone, first);
  EXPECT_EQ(next_undo(j, facts), std::nullopt);
}

// Proves S2
TEST_F(undo_plans, know_whether_the_pivot_may_have_been_passed) {
  local("undoable");
  EXPECT_FALSE(pivot_passed(j, facts));
  const auto asked = remote("the pivot");
  EXPECT_TRUE(pivot_passed(j, facts)) << "it may have been done";
  EXPECT_FALSE(pivot_passed(j, facts, asked));
  add(row_kind::refused, asked);
  EXPECT_FALSE(pivot_passed(j, facts));
}

TEST_F(undo_plans, know_whether_anything_ran) {
  EXPECT_FALSE(anything_ran(j));
  j.append({.kind = row_kind::refused, .name = "a"});
  const auto asked = remote("b");
  add(row_kind::refused, asked);
  EXPECT_FALSE(anything_ran(j));
  local("c");
  EXPECT_TRUE(anything_ran(j));
}

}  // namespace
}  // namespace settle::sagas
