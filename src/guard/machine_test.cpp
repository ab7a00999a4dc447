#include "guard/machine.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::guards {
namespace {

guard_options order() {
  return {.machine = "order",
          .table = "orders",
          .states = {"NEW", "PAID", "SHIPPED", "CANCELLED"},
          .initial = {"NEW"},
          .ends = {"SHIPPED", "CANCELLED"},
          .transitions = {{"NEW", "PAID", {"payments", "admin"}},
                          {"PAID", "SHIPPED"},
                          {"NEW", "CANCELLED"},
                          {"PAID", "CANCELLED", {"admin"}}}};
}

// What the declaration is refused with; empty if it is accepted.
std::string complaint(const guard_options& declared) {
  try {
    const guard made(declared);
    return "";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    return e.what();
  }
}

void expect_complaint(const guard_options& declared, const std::string& part) {
  EXPECT_NE(complaint(declared).find(part), std::string::npos) << complaint(declared);
}

// Proves G1
TEST(guard_declaration, a_sound_one_is_accepted) { EXPECT_EQ(complaint(order()), ""); }

// Proves G1
TEST(guard_declaration, states_that_are_not_declared_are_named) {
  auto wrong = order();
  wrong.transitions.push_back({"PAID", "LOST"});
  wrong.initial.push_back("DRAFT");
  expect_complaint(wrong, "states that are not declared: 'DRAFT', 'LOST'");
}

// Proves G1
TEST(guard_declaration, states_that_nothing_leads_to_are_named) {
  auto wrong = order();
  wrong.states.insert(wrong.states.end(), {"A", "B"});  // they lead to each other only
  wrong.transitions.insert(wrong.transitions.end(), {{"A", "B"}, {"B", "A"}, {"A", "PAID"}});
  expect_complaint(wrong, "states that nothing leads to from an initial one: 'A', 'B'");
}

// Proves G1
TEST(guard_declaration, states_without_a_way_out_must_be_among_the_ends) {
  auto wrong = order();
  wrong.ends = {"SHIPPED"};
  expect_complaint(wrong, "nothing leads out of, though they are not among the ends: 'CANCELLED'");
  wrong.ends = {"SHIPPED", "CANCELLED", "PAID"};
  expect_complaint(wrong, "ends that something leads out of: 'PAID'");
}

// Proves G1
TEST(guard_declaration, what_is_there_twice_or_leads_nowhere_is_named) {
  auto wrong = order();
  wrong.transitions.push_back({"NEW", "PAID", {"somebody else"}});
  wrong.transitions.push_back({"NEW", "NEW"});
  wrong.states.push_back("PAID");
  expect_complaint(wrong, "transitions that are there twice: 'NEW → PAID'");
  expect_complaint(wrong, "transitions from a state to itself, which move() calls unchanged: 'NEW'");
  expect_complaint(wrong, "states that are declared twice: 'PAID'");
}

TEST(guard_declaration, an_empty_one_says_so) {
  expect_complaint({.machine = "m", .table = "t", .states = {}, .initial = {}, .transitions = {}},
                   "there are no states; there is no initial state");
}

TEST(guard_declaration, names_are_checked) {
  const auto code = [](auto change) {
    auto wrong = order();
    change(wrong);
    return test::code_of([&] { const guard made(wrong); });
  };
  EXPECT_EQ(code([](auto& o) { o.machine = ""; }), errc::invalid_name);
  EXPECT_EQ(code([](auto& o) { o.table = "a\tb"; }), errc::invalid_name);
  EXPECT_EQ(code([](auto& o) { o.column = std::string(64, 'c'); }), errc::invalid_name);
  EXPECT_EQ(code([](auto& o) { o.key = ""; }), errc::invalid_name);
  EXPECT_EQ(code([](auto& o) { o.states.push_back("a\nb"); }), errc::invalid_name);
  EXPECT_EQ(code([](auto& o) { o.key = o.column; }), errc::invalid_argument);
}

// Proves G1
TEST(guard_judgement, goes_by_where_the_row_is_and_who_asks) {
  const auto judged = [](const std::optional<std::string>& state, const std::string& to,
                         const move_options& asked) {
    return judge(order(), state, to, sources_for(order(), to, asked));
  };
  EXPECT_EQ(judged("NEW", "PAID", {.actor = "payments"}), move_outcome::moved);
  EXPECT_EQ(judged("NEW", "PAID", {.actor = "eve", .roles = {"guest", "admin"}}), move_outcome::moved);
  EXPECT_EQ(judged("NEW", "PAID", {.actor = "eve", .roles = {"guest"}}), move_outcome::forbidden);
  EXPECT_EQ(judged("NEW", "PAID", {}), move_outcome::forbidden);
  EXPECT_EQ(judged("NEW", "CANCELLED", {}), move_outcome::moved);
  EXPECT_EQ(judged("PAID", "CANCELLED", {}), move_outcome::forbidden);
  EXPECT_EQ(judged("PAID", "PAID", {}), move_outcome::unchanged);
  EXPECT_EQ(judged("SHIPPED", "PAID", {.actor = "payments"}), move_outcome::conflict);
  EXPECT_EQ(judged("nobody declared this", "PAID", {.actor = "payments"}), move_outcome::conflict);
  EXPECT_EQ(judged(std::nullopt, "PAID", {.actor = "payments"}), move_outcome::conflict);
}

// Proves G1
TEST(guard_drawing, is_a_mermaid_state_diagram) {
  EXPECT_EQ(guard(order()).mermaid(),
            "stateDiagram-v2\n"
            "    [*] --> NEW\n"
            "    NEW --> PAID : payments, admin\n"
            "    PAID --> SHIPPED\n"
            "    NEW --> CANCELLED\n"
            "    PAID --> CANCELLED : admin\n"
            "    SHIPPED --> [*]\n"
            "    CANCELLED --> [*]\n");
}

// Proves G1
TEST(guard_drawing, names_mean_nothing_but_themselves) {
  const guard odd({.machine = "odd",
                   .table = "t",
                   .states = {"end", "in transit", R"(a"b;#%{<-->:x)", "größer"},
                   .initial = {"in transit"},
                   .ends = {"end"},
                   .transitions = {{"in transit", R"(a"b;#%{<-->:x)", {"ops: [*] --> x"}},
                                   {R"(a"b;#%{<-->:x)", "größer"},
                                   {"größer", "end"}}});
  EXPECT_EQ(odd.mermaid(),
            "stateDiagram-v2\n"
            "    state \"end\" as _s1\n"
            "    state \"in transit\" as _s2\n"
            "    state \"a#34;b#59;#35;#37;#123;#60;--#62;#58;x\" as _s3\n"
            "    state \"größer\" as _s4\n"
            "    [*] --> _s2\n"
            "    _s2 --> _s3 : ops#58; #91;#42;#93; --#62; x\n"
            "    _s3 --> _s4\n"
            "    _s4 --> _s1\n"
            "    _s1 --> [*]\n");
}

}  // namespace
}  // namespace settle::guards
