#include "guard/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace settle::guards {
namespace {

using names = std::vector<std::string>;

bool has(std::span<const std::string> list, std::string_view one) {
  return std::ranges::find(list, one) != list.end();
}

std::string listed(const names& all) { return fmt::format("'{}'", fmt::join(all, "', '")); }

// One sentence about all names that share a fault.
void complain(names& problems, const names& about, std::string_view what) {
  if (!about.empty()) problems.push_back(fmt::format("{}: {}", what, listed(about)));
}

names repeated_in(const names& list) {
  std::set<std::string> seen, twice;
  for (const auto& one : list)
    if (!seen.insert(one).second) twice.insert(one);
  return {twice.begin(), twice.end()};
}

names undeclared_in(const guard_options& declared) {
  std::set<std::string> unknown;
  const auto look = [&](const std::string& state) {
    if (!has(declared.states, state)) unknown.insert(state);
  };
  for (const auto& one : declared.initial) look(one);
  for (const auto& one : declared.ends) look(one);
  for (const auto& one : declared.transitions) {
    look(one.from);
    look(one.to);
  }
  return {unknown.begin(), unknown.end()};
}

names unreachable_in(const guard_options& declared) {
  names open = declared.initial;
  std::set<std::string, std::less<>> reached(open.begin(), open.end());
  while (!open.empty()) {
    const auto at = std::move(open.back());
    open.pop_back();
    for (const auto& one : declared.transitions)
      if (one.from == at && reached.insert(one.to).second) open.push_back(one.to);
  }
  names never;
  for (const auto& state : declared.states)
    if (!reached.contains(state)) never.push_back(state);
  return never;
}

bool leads_out(const guard_options& declared, const std::string& state) {
  return std::ranges::find(declared.transitions, state, &transition::from) != declared.transitions.end();
}

std::string arrow(const transition& of) { return of.from + " → " + of.to; }

void judge_transitions(const guard_options& declared, names& problems) {
  names arrows, circles;
  for (const auto& one : declared.transitions) {
    arrows.push_back(arrow(one));
    if (one.from == one.to) circles.push_back(one.from);
  }
  complain(problems, repeated_in(arrows), "transitions that are there twice");
  complain(problems, circles, "transitions from a state to itself, which move() calls unchanged");
}

void judge_ways_out(const guard_options& declared, names& problems) {
  names stuck, open;
  for (const auto& state : declared.states) {
    const bool ends = has(declared.ends, state);
    if (!ends && !leads_out(declared, state)) stuck.push_back(state);
    if (ends && leads_out(declared, state)) open.push_back(state);
  }
  complain(problems, stuck, "states that nothing leads out of, though they are not among the ends");
  complain(problems, open, "ends that something leads out of");
}

bool may(const transition& by, const move_options& asked) {
  if (by.who.empty() || (!asked.actor.empty() && has(by.who, asked.actor))) return true;
  return std::ranges::any_of(asked.roles, [&](const auto& role) { return has(by.who, role); });
}

}  // namespace

std::vector<std::string> problems_of(const guard_options& declared) {
  names problems;
  if (declared.states.empty()) problems.push_back("there are no states");
  if (declared.initial.empty()) problems.push_back("there is no initial state");
  complain(problems, repeated_in(declared.states), "states that are declared twice");
  complain(problems, undeclared_in(declared), "states that are not declared");
  judge_transitions(declared, problems);
  if (!declared.initial.empty())
    complain(problems, unreachable_in(declared), "states that nothing leads to from an initial one");
  judge_ways_out(declared, problems);
  return problems;
}

std::vector<std::string> sources_for(const guard_options& declared, std::string_view to,
                                     const move_options& asked) {
  names sources;
  for (const auto& one : declared.transitions)
    if (one.to == to && may(one, asked)) sources.push_back(one.from);
  return sources;
}

move_outcome judge(const guard_options& declared, const std::optional<std::string>& state,
                   std::string_view to, const std::vector<std::string>& sources) {
  if (!state) return move_outcome::conflict;
  if (*state == to) return move_outcome::unchanged;
  if (has(sources, *state)) return move_outcome::moved;
  const bool leads = std::ranges::any_of(
      declared.transitions, [&](const transition& one) { return one.from == *state && one.to == to; });
  return leads ? move_outcome::forbidden : move_outcome::conflict;
}

}  // namespace settle::guards
