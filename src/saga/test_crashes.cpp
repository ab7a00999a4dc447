// The same saga again and again, with a crash at every effect in turn.
#include <algorithm>
#include <map>
#include <set>

#include "saga/test_world.hpp"

namespace settle::sagas {
namespace {

// How everything ended, as far as a crash must not change it.
struct ending {
  std::vector<std::string> statuses = {};
  std::vector<std::string> effects = {};
  std::set<std::string> calls = {};  // the same one may be made twice, with one key
  std::string tables = {};
  friend bool operator==(const ending&, const ending&) = default;
};

template <class Words>
std::string listed(const Words& all) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : ", ") + one;
  return text.empty() ? "nothing" : text;
}

std::string difference(const ending& expected, const ending& found) {
  std::string text;
  const auto compare = [&](const char* what, const std::string& was, const std::string& is) {
    if (was != is) text += std::string("\n  ") + what + ": " + is + "\n    undisturbed: " + was;
  };
  compare("status", listed(expected.statuses), listed(found.statuses));
  compare("effects", listed(expected.effects), listed(found.effects));
  compare("calls", listed(expected.calls), listed(found.calls));
  compare("tables", expected.tables, found.tables);
  return text;
}

ending ending_of(const std::vector<seen_saga>& all, const step_book& book, std::string tables) {
  ending found{.tables = std::move(tables)};
  for (const auto& one : all) {
    found.statuses.push_back(one.status);
    std::ranges::copy(effects_of(one.rows), std::back_inserter(found.effects));
  }
  std::ranges::sort(found.effects);  // those of branches come in any order
  for (const auto& one : book.calls)
    found.calls.insert((one.undo ? "undo " : "") + one.step + " with the key " + one.key);
  return found;
}

// A step that says on_unknown(hold) asks for a person after a crash, and that is right.
bool is_held_as_it_says(const seen_saga& of, const detail::saga_definition* definition) {
  const auto* held = of.rows.last(row_kind::held);
  if (of.status != "HELD" || held == nullptr || !held->of || definition == nullptr) return false;
  return std::ranges::any_of(definition->steps, [&](const auto& step) {
    return step->name == held->name && step->on_unknown == unknown::hold;
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
    if (found == expected) continue;
    auto& in = *crashing.parts_;
    const auto all = in.look();
    if (std::ranges::any_of(
            all, [&](const auto& one) { return sagas::is_held_as_it_says(one, in.definition_of(one)); })) {
      ++report.held;
      continue;
    }
    auto text =
        "a crash at " + report.points[pass] + " leads to another end:" + sagas::difference(expected, found);
    for (const auto& one : all) text += "\n" + crashing.story(one.id);
    throw saga_difference(text);
  }
  return report;
}

}  // namespace settle::inline v0::testing
