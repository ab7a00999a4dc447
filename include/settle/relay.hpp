// The relay: takes committed events out of a database's outbox and publishes them to a broker.
//
//   settle::relay relay(*db, broker->publishing());
//   settle::background loop(relay);
//
// Guarantees: every committed event is confirmed by the broker at least once; events of one topic and key
// in order; nothing that rolled back. Run as many relays on one outbox as you like, in any processes:
// each owns a part of the keys, under a lease with a fence, and takes over what another leaves behind.
// A broker that is down costs no attempt: the relay pauses, probes with growing pauses and resumes. An event
// that the broker rejects is set aside and tried again; later ones of its topic and key wait behind it,
// nobody else does. After attempts_max it is FAILED, which is logged as an error and counted: see
// settle/outbox.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/service.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// What becomes of a key whose event has FAILED.
enum class exhausted {
  continue_key,  // later events of the key go on without it
  hold_key,      // they wait until somebody requeues it
};

struct relay_options {
  // The CloudEvents source of the messages. Empty: "settle:" and the database's own id.
  std::string source = {};
  // Events per batch: one read, one publish, one progress commit. More is faster and holds more memory.
  std::size_t batch_max = 500;
  // Payload bytes per batch; a single larger event still goes, alone.
  std::size_t batch_bytes_max = 4 * 1024 * 1024;
  // How long a silent owner keeps its part before another relay takes over. Shorter is faster
  // take-over; the fence keeps it correct at any value. Renewed three times in this time. Relays of one
  // outbox may have different ones of up to an hour; longer ones should be alike.
  duration lease_ttl = std::chrono::seconds(10);
  // How often to look without a wake-up, at least. The wake-up is the rule; this is the safety net. On
  // PostgreSQL, where a program may publish with SQL alone, the relay looks more often while events flow:
  // after every quarter of the silence so far, down to 2 ms.
  duration idle_poll = std::chrono::milliseconds(500);
  // How long a published event stays readable in the outbox, counted from its commit. The relays remove
  // older ones in the transactions that they commit anyway.
  duration outbox_keep = std::chrono::hours(12);
  // How long publish_once() remembers that an event was published.
  duration natural_key_keep = std::chrono::hours(24);
  // How long the broker may take to confirm a batch. What it has not confirmed by then is sent again.
  duration publish_timeout = std::chrono::seconds(30);
  // Longest pause between two attempts, of the broker or of one event. They grow as n² · 100 ms.
  duration retry_wait_max = std::chrono::seconds(30);
  // How often an event is offered to a broker that rejects it. Outages of the broker do not count.
  int attempts_max = 5;
  // Continuing keeps the rest of an aggregate flowing; holding keeps its order without a gap.
  exhausted on_exhausted = exhausted::continue_key;
};

class relay final : public service {
 public:
  relay(database& outbox, publisher& destination, const relay_options& options = {});
  ~relay() override;

  // One batch: read, publish, note progress. False when nothing was waiting.
  bool run_once(std::stop_token cancel = {}) override;

  std::string_view name() const override { return "relay"; }
  const environment& env() const override;
  wakeup& arrivals() override;
  duration idle_wait() const override;
  void leave() noexcept override;

 private:
  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<engine> engine_;
};

}  // namespace settle::inline v0

#pragma GCC visibility pop
