#include "settle/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "queries/verify.hpp"
#include "verify/evidence.hpp"
#include "verify/records.hpp"

namespace settle::inline v0 {
namespace {

// The relay has given it up; what a broker has all the same is judged there.
bool has_failed(const noted_effect& what, const evidence& seen) {
  const auto in_outbox = seen.outbox.find(what.event);
  return in_outbox != seen.outbox.end() && in_outbox->second.state == outbox_state::failed &&
         !seen.broker.contains(what.event);
}

bool is_waiting_for(const at_broker& message, const std::string& group) {
  return std::ranges::any_of(message.waiting_for, [&](const auto* waiting) { return *waiting == group; });
}

// Of topics: whether something is under way that is the event of no noted cause. A cause that was noted
// without its event may be the one of such a thing, and cannot be judged then.
class unnamed_events {
 public:
  unnamed_events(const evidence& seen, bool has_broker) {
    if (std::ranges::none_of(seen.causes, [](const auto& one) { return one.event.empty(); })) return;
    for (const auto& one : seen.causes) named_.insert(one.event);
    for (const auto& [id, entry] : seen.outbox)
      if ((!has_broker || entry.state != outbox_state::published) && !named_.contains(id))
        before_broker_.insert(*entry.topic);
    for (const auto& [id, entry] : seen.broker) {
      if (named_.contains(id)) continue;
      at_broker_.insert(*entry.topic);
      for (const auto* group : entry.waiting_for) for_consumer_.emplace(*group, *entry.topic);
    }
    take(seen.parked);
    take(seen.dead_letters);
  }

  bool may_reach(const std::string& consumer, const std::string& topic) const {
    return before_broker_.contains(topic) || for_consumer_.contains({consumer, topic});
  }
  bool may_be_kept(const std::string& topic) const {
    return before_broker_.contains(topic) || at_broker_.contains(topic);
  }

 private:
  void take(const std::map<consumer_and_event, for_consumer>& waiting) {
    for (const auto& [who, entry] : waiting)
      if (entry.given_up && !named_.contains(who.second)) for_consumer_.emplace(who.first, *entry.topic);
  }

  std::unordered_set<std::string_view> named_;
  std::set<std::string> before_broker_, at_broker_;             // topics
  std::set<std::pair<std::string, std::string>> for_consumer_;  // consumer and topic
};

// Where an effect that was not applied is; empty if it is on its way.
std::string why_lost(const noted_effect& what, const std::string& consumer, const evidence& seen,
                     bool has_broker) {
  const auto in_outbox = seen.outbox.find(what.event);
  if (in_outbox != seen.outbox.end() && in_outbox->second.state == outbox_state::pending) return {};
  if (!has_broker) return in_outbox == seen.outbox.end() ? "the event is not in the outbox" : "";
  const auto at = seen.broker.find(what.event);
  if (at == seen.broker.end())
    return in_outbox == seen.outbox.end() ? "the event is neither in the outbox nor at the broker"
                                          : "the outbox says published, but the broker does not have it";
  if (is_waiting_for(at->second, consumer)) return {};
  return "the message was acknowledged, but its effect is not there";
}

class judge {
 public:
  judge(const evidence& seen, const verify_input& input)
      : seen_(seen), input_(input), unnamed_(seen, has_broker_log(input)) {
    for (const auto& [who, entry] : seen.dead_letters) with_dead_letters_.emplace(who.first, *entry.topic);
  }

  verify_report report() {
    count_causes();
    for (const auto& one : seen_.causes) {
      const auto consumers = seen_.consumers.find(*one.topic);
      if (consumers == seen_.consumers.end()) {
        judge_unsubscribed(one);
        continue;
      }
      for (const auto& consumer : consumers->second) judge_one(one, consumer);
    }
    for (const auto& [consumer, applied] : seen_.applied) judge_effects(consumer, applied);
    for (const auto& [consumer, applied] : seen_.applied) judge_order(consumer, applied.first);
    std::set<std::string> names;
    for (const auto& [topic, groups] : seen_.consumers) names.insert(groups.begin(), groups.end());
    report_.consumers.assign(names.begin(), names.end());
    note(unclear_, "effects that may be on their way: their causes were noted without an event");
    note(maybe_replays_,
         "effects that came after a later one of their key and may be replays of dead letters: they were "
         "noted without "
         "an event");
    return std::move(report_);
  }

 private:
  void count_causes() {
    report_.committed = static_cast<std::int64_t>(seen_.causes.size());
    causes_.resize(seen_.effects.size());
    for (const auto& one : seen_.causes) {
      causes_[one.effect].push_back(&one);
      if (seen_.broker.contains(one.event)) ++report_.published;
    }
  }

  void note(std::int64_t count, const char* what) {
    if (count > 0) report_.not_judged.push_back(fmt::format("{} {}", count, what));
  }

  // Nobody listens to the topic: the event still has to reach the broker.
  void judge_unsubscribed(const noted_effect& what) {
    if (what.event.empty()) return judge_without_event(what, "", unnamed_.may_be_kept(*what.topic));
    if (has_failed(what, seen_)) return note_failed(what, "");
    if (seen_.broker.contains(what.event)) return;
    const auto why = why_lost(what, "", seen_, has_broker_log(input_));
    if (!why.empty()) note_lost(what, "", why);
  }

  void judge_one(const noted_effect& what, const std::string& consumer) {
    ++report_.expected;
    const auto effects = seen_.applied.find(consumer);
    if (effects != seen_.applied.end() && effects->second.times.contains(what.effect)) return;
    if (what.event.empty())
      return judge_without_event(what, consumer, unnamed_.may_reach(consumer, *what.topic));
    const auto dead = seen_.dead_letters.find({consumer, what.event});
    if (dead != seen_.dead_letters.end() && dead->second.given_up) {
      ++report_.given_up;
      return;
    }
    if (seen_.parked.contains({consumer, what.event})) {
      ++report_.pending;
      return;
    }
    if (has_failed(what, seen_)) return note_failed(what, consumer);
    const auto why = why_lost(what, consumer, seen_, has_broker_log(input_));
    if (why.empty()) {
      ++report_.pending;
      return;
    }
    note_lost(what, consumer, why);
  }

  void judge_without_event(const noted_effect& what, const std::string& consumer, bool may_be_under_way) {
    if (may_be_under_way)
      ++unclear_;
    else
      note_lost(what, consumer, "committed without an event, and nothing that could be it is on its way");
  }

  void note_lost(const noted_effect& what, const std::string& consumer, const std::string& why) {
    ++report_.lost;
    find("lost", consumer, what.subject, why);
  }

  void note_failed(const noted_effect& what, const std::string& consumer) {
    ++report_.failed;
    find("failed", consumer, what.subject, why_failed);
  }

  void judge_effects(const std::string& consumer, const applied_effects& applied) {
    for (const auto& what : applied.first) {
      ++report_.applied;
      if (const auto times = applied.times.at(what.effect); times > 1) {
        ++report_.doubled;
        find("doubled", consumer, what.subject, fmt::format("applied {} times", times));
      }
      if (causes_[what.effect].empty()) {
        ++report_.ghosts;
        find("ghost", consumer, what.subject, "applied, but never committed");
      }
    }
  }

  const noted_effect* cause_of(const noted_effect& applied) const {
    const auto& causes = causes_[applied.effect];
    const auto same_key = std::ranges::find(causes, *applied.key, [](const auto* one) { return *one->key; });
    return same_key == causes.end() ? nullptr : *same_key;
  }

  void judge_order(const std::string& consumer, const std::vector<noted_effect>& order) {
    std::map<std::tuple<std::string_view, std::string_view, std::size_t>, const noted_effect*>
        latest;  // topic, key, database
    for (const auto& one : order) {
      const auto* const cause = one.key->empty() ? nullptr : cause_of(one);
      if (cause == nullptr) continue;
      const auto& event = cause->event.empty() ? one.event : cause->event;
      if (seen_.dead_letters.contains({consumer, event})) continue;  // replays come when they are asked for
      const auto [before, first] = latest.try_emplace({*cause->topic, *cause->key, cause->database}, cause);
      if (first) continue;
      if (cause->order > before->second->order) {
        before->second = cause;
        continue;
      }
      if (event.empty() && with_dead_letters_.contains({consumer, *cause->topic})) {
        ++maybe_replays_;
        continue;
      }
      ++report_.reordered;
      find("reordered", consumer, one.subject,
           fmt::format("applied after {}, a later one of key {}", before->second->subject, *one.key));
    }
  }

  void find(const std::string& kind, const std::string& consumer, const std::string& subject,
            const std::string& detail) {
    if (found_[kind]++ < input_.examples_max) report_.findings.push_back({kind, consumer, subject, detail});
  }

  const evidence& seen_;
  const verify_input& input_;
  unnamed_events unnamed_;
  std::set<std::pair<std::string, std::string>> with_dead_letters_;  // consumer and topic
  verify_report report_;
  std::vector<std::vector<const noted_effect*>> causes_;  // by effect
  std::map<std::string, std::size_t> found_;
  std::int64_t unclear_ = 0;
  std::int64_t maybe_replays_ = 0;
};

bool has_effect_log(database& db) {
  auto tx = db.read();
  const auto has = [&](const char* kind) {
    return !tx.execute(queries::verify::read_effects, {kind, 0, 1}).empty();
  };
  return has("committed") || has("applied");
}

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
  if (std::ranges::none_of(input.services, [](auto* db) { return has_effect_log(*db); }))
    return verify_records(input);
  evidence seen;
  read_evidence(input, seen);
  auto report = judge(seen, input).report();
  if (input.broker == nullptr)
    report.not_judged.emplace_back(
        "without the broker's file: consumers that applied nothing, and messages lost after the relay");
  else if (!has_broker_log(input))
    report.not_judged.emplace_back("messages lost after the relay: this broker cannot be read from a place");
  return report;
}

}  // namespace settle::inline v0
