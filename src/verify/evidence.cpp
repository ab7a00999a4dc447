#include "verify/evidence.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "queries/verify.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "verify/pages.hpp"

namespace settle {
namespace {

std::vector<noted_effect> read_log(database& db, const char* kind, evidence& into,
                                   const std::function<void(const result::row&)>& also = {}) {
  namespace columns = queries::verify::read_effects_columns;
  std::vector<noted_effect> found;
  read_pages(db, {queries::verify::read_effects, {kind}, {0}, columns::id}, [&](const result::row& row) {
    const auto& topic = row[columns::topic].text();
    const auto& subject = row[columns::subject].text();
    const auto& event = row[columns::event_id];
    found.push_back({into.effects.of(topic, subject), into.texts.keep(topic),
                     into.texts.keep(row[columns::key].text()), subject,
                     event.is_null() ? std::string() : event.text(), row[columns::id].integer(), 0});
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
  namespace columns = queries::verify::read_outbox_state_columns;
  read_pages(db, {queries::verify::read_outbox_state, {}, {before_all_events}, columns::id},
             [&](const result::row& row) {
               into.outbox[row[columns::event_id].text()] = {state_of(row[columns::status].text()),
                                                             into.texts.keep(row[columns::topic].text())};
             });
}

void read_broker(broker_inspection& broker, evidence& into) {
  if (broker.log() == nullptr) {
    for (const auto& one : broker.groups()) into.consumers[one.topic].insert(one.group);
    return;
  }
  broker.log()->scan(
      [&](std::string_view group, std::string_view topic) {
        into.consumers[std::string(topic)].insert(std::string(group));
      },
      [&](const kept_message& one) {
        auto& entry = into.broker[std::string(one.id)];
        entry.topic = into.texts.keep(std::string(one.topic));
        for (const auto group : one.waiting_for)
          entry.waiting_for.push_back(into.texts.keep(std::string(group)));
      });
}

void read_downstream(database& db, evidence& into) {
  const auto parked = db.read().execute(queries::verify::read_parked);
  for (std::size_t i = 0; i < parked.size(); ++i) {
    namespace columns = queries::verify::read_parked_columns;
    into.parked[{parked[i][columns::consumer].text(), parked[i][columns::message_id].text()}] = {
        true, into.texts.keep(parked[i][columns::topic].text())};
  }
  const auto dead = db.read().execute(queries::verify::read_dead_letters);
  for (std::size_t i = 0; i < dead.size(); ++i) {
    namespace columns = queries::verify::read_dead_letters_columns;
    into.dead_letters[{dead[i][columns::consumer].text(), dead[i][columns::message_id].text()}] = {
        dead[i][columns::given_up].integer() != 0, into.texts.keep(dead[i][columns::topic].text())};
  }
  std::vector<std::string> by;
  auto applied = read_log(db, "applied", into, [&](const result::row& row) {
    by.push_back(row[queries::verify::read_effects_columns::consumer].text());
  });
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
