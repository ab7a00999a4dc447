// The checker: was anything lost, doubled, invented or reordered?
//
// A system under test writes an effect log: one row when it commits the cause, one row each time it
// applies the effect. The log is unconstrained on purpose. A unique key would hide the very thing that
// is looked for: an effect that happened twice.
//
//   settle::note_committed(tx, {.topic = "orders", .key = customer, .subject = order_id, .event = id});
//   settle::note_applied(tx, "warehouse", {.topic = "orders", .key = customer, .subject = order_id});
//
//   auto report = settle::verify(
//       {.services = {orders.get(), warehouse.get()}, .broker = broker->inspection()});
//   if (!report.clean()) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "settle/database.hpp"
#include "settle/ids.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct effect {
  std::string topic;
  std::string key;      // order is checked within one key; empty: not checked
  std::string subject;  // the business identity of the effect, e.g. the order's id
  // If known, pending can be told from lost, and a replay of a dead letter from disorder. Without it such
  // effects are not judged, and the report says how many.
  std::optional<event_id> event = std::nullopt;
};

void note_committed(transaction& tx, const effect& what);
void note_applied(transaction& tx, const std::string& consumer, const effect& what);

class broker_inspection;  // settle/driver/broker_inspection.hpp

struct verify_input {
  std::vector<database*> services;  // every database with an outbox or an effect log
  // broker::inspection(); null, or of a broker that cannot be read from a place: published and pending are
  // not judged.
  broker_inspection* broker = nullptr;
  std::size_t examples_max = 10;  // how many findings to name, per kind
};

struct verify_finding {
  std::string kind;  // lost, doubled, ghost or reordered; failed, which breaks no promise but needs somebody
  std::string consumer;
  std::string subject;
  std::string detail;
};

// Without an effect log the checker goes by the records that every system has: outbox, broker and
// deduplication records. Then from_records is true, `committed` counts the events in the outboxes and
// `applied` their records; not_judged says what records cannot tell.
struct verify_report {
  bool from_records = false;
  std::int64_t committed = 0;  // causes in the effect logs
  std::int64_t published = 0;  // distinct committed events that the broker holds
  std::int64_t expected = 0;   // committed × consumers subscribed to the topic
  std::int64_t applied = 0;    // distinct (consumer, subject) applied
  std::int64_t pending = 0;    // not applied yet, and still on their way, or waiting for another try
  std::int64_t given_up = 0;   // not applied, but there is a dead letter
  std::int64_t failed = 0;     // not applied: the broker rejects the event, and the relay has given it up
  std::int64_t lost = 0;       // not applied, and nowhere on their way
  std::int64_t doubled = 0;    // applied more than once
  std::int64_t ghosts = 0;     // applied, but never committed
  std::int64_t reordered = 0;  // applied before an earlier one of their key; replays are expected to be
  std::vector<std::string> consumers;
  std::vector<verify_finding> findings;
  std::vector<std::string> not_judged;  // what could not be checked, and why

  bool clean() const { return lost == 0 && doubled == 0 && ghosts == 0 && reordered == 0; }
};

verify_report verify(const verify_input& input);

}  // namespace settle::inline v0

#pragma GCC visibility pop
