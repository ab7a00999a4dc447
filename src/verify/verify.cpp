#include "settle/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "queries/verify.hpp"
#include "verify/records.hpp"

namespace settle::inline v0 {
namespace {

using topic_and_subject = std::pair<std::string, std::string>;
using consumer_and_event = std::pair<std::string, std::string>;

struct cause {
  std::string topic, key, subject, event;
  std::size_t order = 0;     // within its database
  std::size_t database = 0;  // which one: causes in different databases have no order between them
};

struct at_broker {
  bool present = false;
  std::set<std::string> waiting_for;  // groups that have not acknowledged every copy
};

// Everything read from the databases, upstream first and downstream last: an event that moves on while
// we read is then seen at least once, so a running system is never accused of losing it.
struct evidence {
  std::vector<cause> causes;
  std::unordered_map<std::string, outbox_state> outbox;  // by event id
  std::unordered_map<std::string, at_broker> broker;
  std::set<consumer_and_event> parked;
  std::map<consumer_and_event, bool> dead_letters;                           // whether it is still given up
  std::map<std::string, std::set<std::string>> consumers;                    // topic → groups and appliers
  std::map<std::string, std::map<topic_and_subject, std::int64_t>> applied;  // consumer → count
  std::map<std::string, std::vector<cause>> applied_order;                   // consumer → first applications
};

std::vector<cause> read_causes(database& db, std::size_t index) {
  const auto rows = db.read().execute(queries::verify::read_effects, {"committed"});
  std::vector<cause> causes;
  for (std::size_t i = 0; i < rows.size(); ++i)
    causes.push_back({rows[i][1].text(), rows[i][2].text(), rows[i][3].text(),
                      rows[i][4].is_null() ? std::string() : rows[i][4].text(), i, index});
  return causes;
}

void read_upstream(database& db, std::size_t index, evidence& into) {
  std::ranges::move(read_causes(db, index), std::back_inserter(into.causes));
  const auto rows = db.read().execute(queries::verify::read_outbox_state);
  for (std::size_t i = 0; i < rows.size(); ++i) into.outbox[rows[i][0].text()] = state_of(rows[i][1].text());
}

void read_broker(database& db, evidence& into) {
  auto tx = db.read();
  const auto groups = tx.execute(queries::verify::read_broker_groups);
  for (std::size_t i = 0; i < groups.size(); ++i)
    into.consumers[groups[i][1].text()].insert(groups[i][0].text());
  const auto rows = tx.execute(queries::verify::read_broker_messages);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& entry = into.broker[rows[i][0].text()];
    entry.present = true;
    if (rows[i][3].integer() == 0 && !rows[i][2].text().empty()) entry.waiting_for.insert(rows[i][2].text());
  }
}

void read_downstream(database& db, evidence& into) {
  const auto parked = db.read().execute(queries::verify::read_parked);
  for (std::size_t i = 0; i < parked.size(); ++i)
    into.parked.emplace(parked[i][0].text(), parked[i][1].text());
  const auto dead = db.read().execute(queries::verify::read_dead_letters);
  for (std::size_t i = 0; i < dead.size(); ++i)
    into.dead_letters[{dead[i][0].text(), dead[i][1].text()}] = dead[i][2].integer() != 0;
  const auto rows = db.read().execute(queries::verify::read_effects, {"applied"});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& consumer = rows[i][0].text();
    const cause what{rows[i][1].text(), rows[i][2].text(), rows[i][3].text(), {}, i, 0};
    into.consumers[what.topic].insert(consumer);
    if (++into.applied[consumer][{what.topic, what.subject}] == 1)
      into.applied_order[consumer].push_back(what);
  }
}

// The relay has given it up; what a broker has all the same is judged there.
bool has_failed(const cause& what, const evidence& seen) {
  const auto in_outbox = seen.outbox.find(what.event);
  return in_outbox != seen.outbox.end() && in_outbox->second == outbox_state::failed &&
         !seen.broker.contains(what.event);
}

// Where an effect that was not applied is; empty if it is on its way.
std::string why_lost(const cause& what, const std::string& consumer, const evidence& seen, bool has_broker) {
  if (what.event.empty()) return "committed without an event";
  const auto in_outbox = seen.outbox.find(what.event);
  if (in_outbox != seen.outbox.end() && in_outbox->second == outbox_state::pending) return {};
  if (!has_broker) return in_outbox == seen.outbox.end() ? "the event is not in the outbox" : "";
  const auto at = seen.broker.find(what.event);
  if (at == seen.broker.end())
    return in_outbox == seen.outbox.end() ? "the event is neither in the outbox nor at the broker"
                                          : "the outbox says published, but the broker does not have it";
  if (at->second.waiting_for.contains(consumer)) return {};
  return "the message was acknowledged, but its effect is not there";
}

class judge {
 public:
  judge(const evidence& seen, const verify_input& input) : seen_(seen), input_(input) {}

  verify_report report() {
    count_causes();
    for (const auto& one : seen_.causes) {
      const auto consumers = seen_.consumers.find(one.topic);
      if (consumers == seen_.consumers.end()) {
        judge_unsubscribed(one);
        continue;
      }
      for (const auto& consumer : consumers->second) judge_one(one, consumer);
    }
    for (const auto& [consumer, effects] : seen_.applied) judge_effects(consumer, effects);
    for (const auto& [consumer, order] : seen_.applied_order) judge_order(consumer, order);
    std::set<std::string> names;
    for (const auto& [topic, groups] : seen_.consumers) names.insert(groups.begin(), groups.end());
    report_.consumers.assign(names.begin(), names.end());
    return std::move(report_);
  }

 private:
  void count_causes() {
    report_.committed = static_cast<std::int64_t>(seen_.causes.size());
    for (const auto& one : seen_.causes) {
      committed_.insert({one.topic, one.subject});
      if (const auto at = seen_.broker.find(one.event); at != seen_.broker.end()) ++report_.published;
    }
  }

  // Nobody listens to the topic: the event still has to reach the broker.
  void judge_unsubscribed(const cause& what) {
    if (has_failed(what, seen_)) return note_failed(what, "");
    const auto why = why_lost(what, "", seen_, input_.broker != nullptr);
    const bool at_broker = seen_.broker.contains(what.event);
    if (!why.empty() && !at_broker) {
      ++report_.lost;
      find("lost", "", what.subject, why);
    }
  }

  void judge_one(const cause& what, const std::string& consumer) {
    ++report_.expected;
    const auto effects = seen_.applied.find(consumer);
    if (effects != seen_.applied.end() && effects->second.contains({what.topic, what.subject})) return;
    const auto dead = seen_.dead_letters.find({consumer, what.event});
    if (dead != seen_.dead_letters.end() && dead->second) {
      ++report_.given_up;
      return;
    }
    if (seen_.parked.contains({consumer, what.event})) {
      ++report_.pending;
      return;
    }
    if (has_failed(what, seen_)) return note_failed(what, consumer);
    const auto why = why_lost(what, consumer, seen_, input_.broker != nullptr);
    if (why.empty()) {
      ++report_.pending;
      return;
    }
    ++report_.lost;
    find("lost", consumer, what.subject, why);
  }

  void note_failed(const cause& what, const std::string& consumer) {
    ++report_.failed;
    find("failed", consumer, what.subject, why_failed);
  }

  void judge_effects(const std::string& consumer, const std::map<topic_and_subject, std::int64_t>& effects) {
    for (const auto& [what, times] : effects) {
      ++report_.applied;
      if (times > 1) {
        ++report_.doubled;
        find("doubled", consumer, what.second, fmt::format("applied {} times", times));
      }
      if (!committed_.contains(what)) {
        ++report_.ghosts;
        find("ghost", consumer, what.second, "applied, but never committed");
      }
    }
  }

  void judge_order(const std::string& consumer, const std::vector<cause>& order) {
    if (ranked_.empty())
      for (const auto& one : seen_.causes) ranked_.emplace(std::tuple(one.topic, one.key, one.subject), &one);
    std::map<std::tuple<std::string, std::string, std::size_t>, const cause*> latest;  // topic, key, database
    for (const auto& one : order) {
      const auto found = ranked_.find({one.topic, one.key, one.subject});
      if (one.key.empty() || found == ranked_.end()) continue;
      const auto* now = found->second;
      if (seen_.dead_letters.contains({consumer, now->event})) continue;
      const auto [before, first] = latest.try_emplace({now->topic, now->key, now->database}, now);
      if (first) continue;
      if (now->order > before->second->order) {
        before->second = now;
        continue;
      }
      ++report_.reordered;
      find("reordered", consumer, one.subject,
           fmt::format("applied after {}, a later one of key {}", before->second->subject, one.key));
    }
  }

  void find(const std::string& kind, const std::string& consumer, const std::string& subject,
            const std::string& detail) {
    if (found_[kind]++ < input_.examples_max) report_.findings.push_back({kind, consumer, subject, detail});
  }

  const evidence& seen_;
  const verify_input& input_;
  verify_report report_;
  std::set<topic_and_subject> committed_;
  std::map<std::tuple<std::string, std::string, std::string>, const cause*> ranked_;  // topic, key, subject
  std::map<std::string, std::size_t> found_;
};

}  // namespace

void note_committed(transaction& tx, const effect& what) {
  tx.execute(queries::verify::note_effect,
             {"committed", "", what.topic, what.key, what.subject, what.event, tx.env().now()});
}

void note_applied(transaction& tx, const std::string& consumer, const effect& what) {
  tx.execute(queries::verify::note_effect,
             {"applied", consumer, what.topic, what.key, what.subject, what.event, tx.env().now()});
}

verify_report verify(const verify_input& input) {
  evidence seen;
  for (std::size_t i = 0; i < input.services.size(); ++i) read_upstream(*input.services[i], i, seen);
  if (input.broker != nullptr) read_broker(*input.broker, seen);
  for (auto* db : input.services) read_downstream(*db, seen);
  // Effects may have overtaken our reading of their causes: take in what was committed meanwhile.
  // Those causes are too young to be judged for loss.
  std::set<topic_and_subject> known;
  for (const auto& one : seen.causes) known.insert({one.topic, one.subject});
  std::vector<cause> young;
  for (std::size_t i = 0; i < input.services.size(); ++i)
    for (auto& one : read_causes(*input.services[i], i))
      if (!known.contains({one.topic, one.subject})) young.push_back(std::move(one));
  for (auto& one : young)
    if (std::ranges::any_of(seen.applied,
                            [&](const auto& of) { return of.second.contains({one.topic, one.subject}); }))
      seen.causes.push_back(std::move(one));

  const bool has_log = !seen.causes.empty() || !seen.applied.empty();
  if (!has_log) return verify_records(input);
  auto report = judge(seen, input).report();
  if (input.broker == nullptr)
    report.not_judged.emplace_back(
        "without the broker's file: consumers that applied nothing, and messages lost after the relay");
  return report;
}

}  // namespace settle::inline v0
