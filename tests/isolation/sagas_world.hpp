// Sagas in a database of its own, for isolation specs: hosts that can be stopped in the middle of a tick,
// those who bring events, and what must be true when everybody has ended.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "isolation/runner.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/saga.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/saga_world.hpp"

namespace settle::isolation {

class sagas_world;

// A host as a session of a spec. Each interleaving has a new one.
class host_actor final : public fault_points {
 public:
  host_actor(sagas_world& in, session* as, const std::string& name,
             std::set<std::string, std::less<>> pauses);

  // Adds steps, each of which runs until the next pause, or does one `run_once()`.
  host_actor& runs(int times = 1);

  // In the middle of a step or a call: the session's step ends here.
  static void pause_here();

  void begin_anew();
  bool drain();  // true if there was something
  void advance(duration by) { time_.advance(by); }
  saga_host& host() { return *host_; }
  database& db() { return *db_; }
  std::string errors;  // that run_once() has thrown

 private:
  void reached(std::string_view point) override;
  bool run_once();

  session* const session_;
  const std::set<std::string, std::less<>> pauses_;
  testing::manual_time time_;
  test::quiet_log log_;
  metrics counters_;
  std::unique_ptr<database> db_;
  std::optional<saga_host> host_;
};

class sagas_world {
 public:
  sagas_world();

  host_actor& add_host(const std::string& name, std::set<std::string, std::less<>> pauses = {});
  // Brings the event for which the saga waits: in one step, and commits in another.
  void add_event(const std::string& name = "event");
  runner& all() { return runner_; }

  // Before each interleaving, with everything empty.
  std::function<void()> before_each;
  // After it, when no host finds anything to do any more. Empty: all is well.
  std::function<std::string()> check;
  exploration explore();

  const std::string& conninfo() const { return conninfo_; }
  std::string run(const std::string& sql) const { return test::run_sql(conninfo_, sql); }
  // What the saga has left, in order; and its status.
  std::string effects() const;
  std::string status() const { return run("select string_agg(status, ',') from settle.sagas"); }
  // As if its lease were over, and nobody knew of it.
  void replace_owner() const;

 private:
  void begin_anew();

  test::scratch_database own_;
  std::string conninfo_;
  runner runner_;
  std::deque<host_actor> hosts_;
  std::optional<host_actor> bringer_;  // of events
  int resets_ = 0;
};

}  // namespace settle::isolation
