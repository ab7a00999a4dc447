// What the effect logs, outboxes, the broker and the consumers say, as it was read.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "settle/verify.hpp"
#include "verify/records.hpp"

namespace settle {

// Texts that come again and again, each kept once: topics, keys, groups.
class known_texts {
 public:
  const std::string* keep(const std::string& text) { return &*kept_.insert(text).first; }

 private:
  std::unordered_set<std::string> kept_;  // its elements stay where they are
};

// What is to happen once per consumer: a topic and a subject, by number.
using effect_number = std::uint32_t;

class effect_numbers {
 public:
  effect_number of(const std::string& topic, const std::string& subject);
  std::size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<std::string, effect_number> numbers_;
};

// One line of an effect log.
struct noted_effect {
  effect_number effect = 0;
  const std::string* topic = nullptr;
  const std::string* key = nullptr;
  std::string subject;
  std::string event;         // empty: it was noted without
  std::int64_t order = 0;    // within its database
  std::size_t database = 0;  // which one: causes in different databases have no order between them
};

struct in_outbox {
  outbox_state state = outbox_state::pending;
  const std::string* topic = nullptr;
};

struct at_broker {
  const std::string* topic = nullptr;
  std::vector<const std::string*> waiting_for;  // groups that have not acknowledged every copy
};

struct for_consumer {
  bool given_up = true;  // of a dead letter: not replayed since
  const std::string* topic = nullptr;
};

using consumer_and_event = std::pair<std::string, std::string>;

struct applied_effects {
  std::vector<noted_effect> first;  // applications, in their order
  std::unordered_map<effect_number, std::int64_t> times;
};

struct evidence {
  known_texts texts;
  effect_numbers effects;
  std::vector<noted_effect> causes;
  std::unordered_map<std::string, in_outbox> outbox;  // by event id
  std::unordered_map<std::string, at_broker> broker;
  std::map<consumer_and_event, for_consumer> parked;
  std::map<consumer_and_event, for_consumer> dead_letters;
  std::map<std::string, std::set<std::string>> consumers;  // topic → groups and appliers
  std::map<std::string, applied_effects> applied;          // by consumer
};

// Upstream first and downstream last: an event that moves on while we read is then seen at least once, so a
// running system is never accused of losing it. Causes that were committed during the reading count only if
// they were applied.
void read_evidence(const verify_input& input, evidence& into);

}  // namespace settle
