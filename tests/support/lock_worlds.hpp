// Worlds for tests of locks: a place where locks are kept and a table of effects (`written`) that they
// protect. A process opens both anew, so that tests can have several, also forked ones.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "settle/lock.hpp"
#include "settle/metrics.hpp"
#include "settle/redis.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

struct process_options {
  fault_points* faults = nullptr;
  bool real_time = false;  // else the world's clock, which moves when told
  lock_service_options service = {};
};

// What one process has of a world.
template <class Locks>
struct lock_process {
  quiet_log log;
  metrics counters;
  std::unique_ptr<redis::client> redis;
  std::unique_ptr<database> db;
  std::unique_ptr<Locks> locks;

  std::int64_t number(const std::string& sql) const { return db->read().execute(sql)[0][0].integer(); }
  // The log has no constraint: it could show an effect twice.
  std::int64_t effects() const { return number("select count(*) from written"); }
};

class lock_world {
 public:
  testing::manual_time time;

 protected:
  environment env_of(const process_options& with, quiet_log& log, metrics& counters);
  static void create_tables(database& db);
};

class sqlite_lock_world : public lock_world {
 public:
  using process = lock_process<settle::locks>;
  static std::string missing() { return {}; }
  sqlite_lock_world();
  std::unique_ptr<process> open(const process_options& with = {});
  void clear();
  // Time passes, for the clock that decides about expiry too.
  void pass(duration by) { time.advance(by); }
  static void fence(transaction& tx, const lock& by) { fenced(tx, by); }
  static constexpr bool same_database = true;

 private:
  temp_dir dir_;
};

class postgres_lock_world : public lock_world {
 public:
  using process = lock_process<settle::locks>;
  static std::string missing() { return postgres_missing(); }
  postgres_lock_world();
  std::unique_ptr<process> open(const process_options& with = {});
  void clear() const;
  void pass(duration by);
  static void fence(transaction& tx, const lock& by) { fenced(tx, by); }
  static constexpr bool same_database = true;

  scratch_database own;
};

// The locks in Redis, the effects in a file of SQLite.
class redis_lock_world : public lock_world {
 public:
  using process = lock_process<settle::advisory_locks>;
  static std::string missing() { return redis_missing(); }
  redis_lock_world();
  ~redis_lock_world();
  std::unique_ptr<process> open(const process_options& with = {});
  void clear();
  void pass(duration by);
  static void fence(transaction& tx, const advisory_lock& by) { fenced(tx, "effects", by.token()); }
  static constexpr bool same_database = false;
  const std::string& prefix() const { return prefix_; }

 private:
  temp_dir dir_;
  std::string prefix_;
};

}  // namespace settle::test
