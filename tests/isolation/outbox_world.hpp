// The outbox of a database of its own, for isolation specs: writers, relays that can be stopped in the middle
// of their work, and the check that whatever was committed is delivered, once and in order, and nothing else.
//
// Writers call emit(key, name) in SQL: it locks the key, publishes an event with this name and notes in the
// same transaction what it has done. What is noted and committed has to be delivered, per key in the order
// in which the lock was held.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "isolation/runner.hpp"
#include "settle/driver/broker.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/relay.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::isolation {

// Names of events, by key.
using event_names = std::map<std::string, std::vector<std::string>>;

struct relay_setup {
  relay_options options = {.lease_ttl = std::chrono::hours(1)};
  // Fault points at which a step ends; the next step goes on there.
  std::set<std::string, std::less<>> pauses = {};
  duration clock_ahead = {};
  bool begins_as_owner = true;  // of all shares
};

class outbox_world;

// A relay as a session of a spec. Each interleaving has a new one.
class relay_actor final : public fault_points {
 public:
  relay_actor(outbox_world& in, session& as, relay_setup setup);

  // Adds steps, each of which runs until the next pause, or does one `run_once()`.
  relay_actor& runs(int times = 1);
  // Adds steps, each of which relays until nothing is left. Whatever was committed before it has then been
  // delivered, whoever else has a transaction open.
  relay_actor& drains(int times = 1);

  void begin_anew();
  bool drain();  // true if there was something
  void leave() { relay_->leave(); }

 private:
  void reached(std::string_view point) override;
  void drain_in_time();

  outbox_world& world_;
  session& session_;
  relay_setup setup_;
  testing::manual_time time_;
  std::unique_ptr<database> db_;
  std::optional<relay> relay_;
};

class outbox_world final : private publisher {
 public:
  outbox_world();

  session& writer(const std::string& name) { return runner_.add(name); }
  relay_actor& relays(const std::string& name = "relay", const relay_setup& setup = {});

  // Statements that run before each interleaving; their events are pending when it begins.
  void before_each(const std::string& statements) { before_each_ = statements; }
  // A relay that was replaced may deliver what its heir delivers too.
  void allow_copies() { copies_allowed_ = true; }
  // Called at each publish with the key that is published, on the relay's thread.
  void on_publish(std::function<void(const std::string& key)> what) { on_publish_ = std::move(what); }

  exploration explore();

  // Commits are not synced, except where the relay asks for it: faster, and the harder case.
  std::string conninfo() const { return test::with(own_.conninfo(), "options=-csynchronous_commit=off"); }
  event_names committed() const;
  event_names delivered() const;  // first deliveries
  publisher& destination() { return *this; }
  environment env(time_source& time, fault_points* faults);

 private:
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override;
  void reset();
  std::string check();
  std::string compare() const;
  bool pending() const;

  test::scratch_database own_;
  test::quiet_log log_;
  metrics counters_;
  std::unique_ptr<database> db_;
  runner runner_;
  std::deque<relay_actor> relays_;
  std::string before_each_;
  bool copies_allowed_ = false;
  int resets_ = 0;
  std::function<void(const std::string&)> on_publish_;

  struct delivery {
    std::string key, name;
  };
  mutable std::mutex mutex_;
  std::vector<delivery> seen_;
};

}  // namespace settle::isolation
