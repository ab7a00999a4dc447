#include "verify/evidence.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "queries/verify.hpp"
#include "verify/pages.hpp"

namespace settle {
namespace {

std::vector<noted_effect> read_log(database& db, const char* kind, evidence& into,
                                   const std::function<void(const result::row&)>& also = {}) {
  std::vector<noted_effect> found;
  read_pages(db, {queries::verify::read_effects, {kind}, {0}, 5}, [&](const result::row& row) {
    const auto& topic = row[1].text();
    const auto& subject = row[3].text();
    found.push_back({into.effects.of(topic, subject), into.texts.keep(topic), into.texts.keep(row[2].text()),
                     subject, row[4].is_null() ? std::string() : row[4].text(), row[5].integer(), 0});
    if (also) also(row);
  });
  return found;
}

std::vector<noted_effect> read_causes(database& db, std::size_t index, evidence& into) {
  auto causes = read_log(db, "committed", into);
  for (auto& one : causes) one.database = index;
  return causes;
}

void read_outbox(database& db, evidence& into) {
  read_pages(db, {queries::verify::read_outbox_state, {}, {before_all_events}, 3},
             [&](const result::row& row) {
               into.outbox[row[0].text()] = {state_of(row[2].text()), into.texts.keep(row[1].text())};
             });
}

void read_broker(database& db, evidence& into) {
  auto tx = db.read();
  const auto groups = tx.execute(queries::verify::read_broker_groups);
  for (std::size_t i = 0; i < groups.size(); ++i)
    into.consumers[groups[i][1].text()].insert(groups[i][0].text());
  const auto rows = tx.execute(queries::verify::read_broker_messages);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& entry = into.broker[rows[i][0].text()];
    entry.topic = into.texts.keep(rows[i][1].text());
    const auto& group = rows[i][2].text();
    if (rows[i][3].integer() == 0 && !group.empty()) entry.waiting_for.push_back(into.texts.keep(group));
  }
}

void read_downstream(database& db, evidence& into) {
  const auto parked = db.read().execute(queries::verify::read_parked);
  for (std::size_t i = 0; i < parked.size(); ++i)
    into.parked[{parked[i][0].text(), parked[i][1].text()}] = {true, into.texts.keep(parked[i][2].text())};
  const auto dead = db.read().execute(queries::verify::read_dead_letters);
  for (std::size_t i = 0; i < dead.size(); ++i)
    into.dead_letters[{dead[i][0].text(), dead[i][1].text()}] = {dead[i][2].integer() != 0,
                                                                 into.texts.keep(dead[i][3].text())};
  std::vector<std::string> by;
  auto applied = read_log(db, "applied", into, [&](const result::row& row) { by.push_back(row[0].text()); });
  for (std::size_t i = 0; i < applied.size(); ++i) {
    into.consumers[*applied[i].topic].insert(by[i]);
    auto& consumer = into.applied[by[i]];
    if (++consumer.times[applied[i].effect] == 1) consumer.first.push_back(std::move(applied[i]));
  }
}

bool is_applied(const evidence& seen, effect_number effect) {
  return std::ranges::any_of(seen.applied, [&](const auto& of) { return of.second.times.contains(effect); });
}

// Effects may have overtaken our reading of their causes: take in what was committed meanwhile. Those causes
// are too young to be judged for loss.
void read_young_causes(const verify_input& input, evidence& into) {
  std::vector<bool> known(into.effects.size());
  for (const auto& one : into.causes) known[one.effect] = true;
  for (std::size_t i = 0; i < input.services.size(); ++i)
    for (auto& one : read_causes(*input.services[i], i, into)) {
      const bool is_young = one.effect >= known.size() || !known[one.effect];
      if (is_young && is_applied(into, one.effect)) into.causes.push_back(std::move(one));
    }
}

}  // namespace

effect_number effect_numbers::of(const std::string& topic, const std::string& subject) {
  auto name = std::to_string(topic.size());
  name.append(":").append(topic).append(subject);
  return numbers_.try_emplace(std::move(name), static_cast<effect_number>(numbers_.size())).first->second;
}

void read_evidence(const verify_input& input, evidence& into) {
  for (std::size_t i = 0; i < input.services.size(); ++i) {
    auto causes = read_causes(*input.services[i], i, into);
    std::ranges::move(causes, std::back_inserter(into.causes));
    read_outbox(*input.services[i], into);
  }
  if (input.broker != nullptr) read_broker(*input.broker, into);
  for (auto* db : input.services) read_downstream(*db, into);
  read_young_causes(input, into);
}

}  // namespace settle
