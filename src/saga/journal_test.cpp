#include "saga/journal.hpp"

#include <gtest/gtest.h>

namespace settle::sagas {
namespace {

TEST(saga_journal, numbers_its_rows_and_finds_what_each_scope_has_opened) {
  journal j;
  j.append({.kind = row_kind::done, .name = "a"});
  j.append({.kind = row_kind::intent, .scope = "0.1/", .name = "b"});
  j.append({.kind = row_kind::undo_begun, .result = "why"});
  j.append({.kind = row_kind::timer});
  EXPECT_EQ(j.at(2).name, "b");
  ASSERT_NE(j.opening("", 1), nullptr);
  EXPECT_EQ(j.opening("", 1)->n, 4);
  EXPECT_EQ(j.opening("", 2), nullptr);
  EXPECT_EQ(j.opening("0.1/", 0)->n, 2);
  EXPECT_EQ(j.opening("0.2/", 0), nullptr);
  EXPECT_EQ(j.openings(), (std::map<std::string, std::size_t>{{"", 2}, {"0.1/", 1}}));
}

TEST(saga_journal, tells_answers_from_other_rows_about_a_row) {
  journal j;
  j.append({.kind = row_kind::intent, .name = "a"});
  EXPECT_EQ(j.answer_of(1), nullptr);
  j.append({.kind = row_kind::unknown, .of = 1});
  EXPECT_EQ(j.answer_of(1), nullptr) << "nobody knows is no answer";
  j.append({.kind = row_kind::refused, .of = 1});
  ASSERT_NE(j.answer_of(1), nullptr);
  EXPECT_EQ(j.answer_of(1)->n, 3);
  EXPECT_EQ(j.opening("", 1), nullptr) << "a refusal of a remote step opens nothing";
  EXPECT_EQ(j.about(1, row_kind::unknown)->n, 2);
  EXPECT_EQ(j.last(row_kind::held), nullptr);
}

// A key that is made of it must not change when another branch is faster.
TEST(saga_journal, counts_occurrences_of_a_name_in_its_own_scope) {
  journal j;
  j.append({.kind = row_kind::intent, .scope = "0.1/", .name = "pay"});
  j.append({.kind = row_kind::intent, .scope = "0.0/", .name = "pay"});
  j.append({.kind = row_kind::done, .scope = "0.0/", .name = "other"});
  j.append({.kind = row_kind::intent, .scope = "0.0/", .name = "pay"});
  EXPECT_EQ(j.outside_name(1), "0.1/pay");
  EXPECT_EQ(j.outside_name(2), "0.0/pay");
  EXPECT_EQ(j.outside_name(4), "0.0/pay#2");
}

TEST(saga_journal, has_a_name_for_every_kind_of_row) {
  EXPECT_EQ(to_string(row_kind::done), "done");
  EXPECT_EQ(to_string(row_kind::timed_out), "timed_out");
  EXPECT_EQ(to_string(row_kind::held), "held");
}

}  // namespace
}  // namespace settle::sagas
