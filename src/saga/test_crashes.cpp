// The same saga again and again, with a crash at every effect in turn.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "saga/test_world.hpp"

namespace settle::sagas {
namespace {

// How everything ended, as far as a crash must not change it. It may make an undo necessary of a step that
// was refused, because nobody knows that any more; so what counts is what is done and not undone.
struct ending {
  std::vector<std::string> statuses = {};
  std::vector<std::string> effects = {};
  std::set<std::string> called = {};                       // steps that are done elsewhere, and were called
  std::map<std::string, std::set<std::string>> keys = {};  // by call
  std::string tables = {};
};

template <class Words>
std::string listed(const Words& all) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : ", ") + one;
  return text.empty() ? "nothing" : text;
}

// Empty: there is none.
std::string difference(const ending& expected, const ending& found) {
  std::string text;
  const auto compare = [&](const std::string& what, const std::string& was, const std::string& is) {
    if (was != is) text += "\n  " + what + ": " + is + "\n    undisturbed: " + was;
  };
  compare("status", listed(expected.statuses), listed(found.statuses));
  compare("done", listed(expected.effects), listed(found.effects));
  compare("called", listed(expected.called), listed(found.called));
  compare("tables", expected.tables, found.tables);
  for (const auto& [call, keys] : found.keys) {
    const auto before = expected.keys.find(call);
    if (before != expected.keys.end()) compare("keys of " + call, listed(before->second), listed(keys));
  }
  return text;
}

bool is_done(const journal& of, const journal_row& row) {
  if (!opens(row) || of.about(row.n, row_kind::undone) != nullptr) return false;
  return row.kind == row_kind::done || of.about(row.n, row_kind::outcome) != nullptr;
}

ending ending_of(const std::vector<seen_saga>& all, const step_book& book, std::string tables) {
  ending found{.tables = std::move(tables)};
  for (const auto& one : book.calls) found.keys[(one.undo ? "the undo of " : "") + one.step].insert(one.key);
  for (const auto& one : all) {
    found.statuses.push_back(one.status);
    for (const auto& row : one.rows.rows()) {
      if (!is_done(one.rows, row)) continue;
      found.effects.push_back(one.rows.outside_name(row.n));
      if (found.keys.contains(found.effects.back())) found.called.insert(found.effects.back());
    }
  }
  std::ranges::sort(found.effects);  // those of branches come in any order
  return found;
}

// A step that says on_unknown(hold), or whose question nobody can answer, needs a person after a crash, and
// that is right.
bool is_held_as_it_says(const seen_saga& of, const detail::saga_definition* definition) {
  const auto* held = of.rows.last(row_kind::held);
  if (of.status != "HELD" || held == nullptr || !held->of || definition == nullptr) return false;
  return std::ranges::any_of(definition->steps, [&](const auto& step) {
    return step->name == held->name &&
           (step->on_unknown == unknown::hold || step->on_unknown == unknown::ask);
  });
}

// "saga.tick.before #2": a point and how often it was passed then.
std::vector<std::string> numbered(const std::vector<std::string>& points) {
  std::map<std::string, int> passed;
  std::vector<std::string> names;
  for (const auto& one : points) names.push_back(one + " #" + std::to_string(++passed[one]));
  return names;
}

}  // namespace
}  // namespace settle::sagas

namespace settle::inline v0::testing {
namespace {

constexpr auto rest = std::chrono::hours(1);

}  // namespace

saga_world::saga_world(const parts& like) : parts_(std::make_unique<parts>(like.options)) {
  parts_->definitions = like.definitions;
  parts_->setups = like.setups;
  *parts_->book = *like.book;
  parts_->book->calls.clear();
  parts_->steps_max = 1;  // a commit for each step
}

crash_report saga_world::crash_at_all(const std::function<void(saga_world&)>& play) const {
  parts migrated(parts_->options);
  migrated.open(nullptr);
  migrated.db.reset();
  const auto play_in = [&](saga_world& world) {
    play(world);
    world.advance(rest);
    auto& in = *world.parts_;
    std::string tables;
    if (in.options.look) {
      auto tx = in.db->read();
      tables = in.options.look(tx);
    }
    return sagas::ending_of(in.look(), *in.book, std::move(tables));
  };

  saga_world undisturbed(*parts_);
  undisturbed.parts_->open(&migrated);
  undisturbed.parts_->points.record();
  const auto expected = play_in(undisturbed);
  crash_report report{.points = sagas::numbered(undisturbed.parts_->points.seen())};
  if (report.points.empty()) throw std::logic_error("saga_world: there was nothing to crash at");

  for (std::size_t pass = 0; pass < report.points.size(); ++pass) {
    saga_world crashing(*parts_);
    crashing.parts_->open(&migrated);
    crashing.parts_->points.crash_at(pass);
    const auto found = play_in(crashing);
    ++report.runs;
    const auto what = sagas::difference(expected, found);
    if (what.empty()) continue;
    auto& in = *crashing.parts_;
    const auto all = in.look();
    if (std::ranges::any_of(
            all, [&](const auto& one) { return sagas::is_held_as_it_says(one, in.definition_of(one)); })) {
      ++report.held;
      continue;
    }
    auto text = "a crash at " + report.points[pass] + " leads to another end:" + what;
    for (const auto& one : all) text += "\n" + crashing.story(one.id);
    throw saga_difference(text);
  }
  return report;
}

}  // namespace settle::inline v0::testing
