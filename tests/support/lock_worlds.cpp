#include "support/lock_worlds.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"

namespace settle::test {

environment lock_world::env_of(const process_options& with, quiet_log& log, metrics& counters) {
  return {.time = with.real_time ? &system_time() : &time,
          .log = &log,
          .counters = &counters,
          .faults = with.faults};
}

void lock_world::create_tables(database& db) {
  migrate(db);
  auto tx = db.begin();
  tx.execute("create table if not exists written (what bigint not null)");
  tx.execute("create table if not exists counter (last bigint not null)");
  tx.execute("insert into counter select 0 where not exists (select 1 from counter)");
  tx.commit();
}

sqlite_lock_world::sqlite_lock_world() { create_tables(*open()->db); }

std::unique_ptr<sqlite_lock_world::process> sqlite_lock_world::open(const process_options& with) {
  auto made = std::make_unique<process>();
  made->db = sqlite::open(dir_.file("service.db"), {.env = env_of(with, made->log, made->counters),
                                                    .busy_timeout = std::chrono::seconds(60)});
  made->locks = std::make_unique<locks>(*made->db, with.service);
  return made;
}

void sqlite_lock_world::clear() {
  dir_.clear();
  create_tables(*open()->db);
}

postgres_lock_world::postgres_lock_world() { create_tables(*open()->db); }

std::unique_ptr<postgres_lock_world::process> postgres_lock_world::open(const process_options& with) {
  auto made = std::make_unique<process>();
  made->db = postgres::open(own.conninfo(), {.env = env_of(with, made->log, made->counters)});
  made->locks = std::make_unique<locks>(*made->db, with.service);
  return made;
}

void postgres_lock_world::clear() const {
  own.run("truncate written, counter, settle.locks, settle.lock_fences; insert into counter values (0)");
}

// The server has its own clock, so the ends come nearer instead.
void postgres_lock_world::pass(duration by) {
  time.advance(by);
  own.run("update settle.locks set held_until = greatest(held_until - " + std::to_string(by.count()) +
          ", 1) where held_until > 0");
}

redis_lock_world::redis_lock_world() {
  static std::atomic<int> made = 0;
  prefix_ = "test:" + std::to_string(::getpid()) + ":" + std::to_string(++made);
  create_tables(*open()->db);
}

std::unique_ptr<redis_lock_world::process> redis_lock_world::open(const process_options& with) {
  auto made = std::make_unique<process>();
  const auto env = env_of(with, made->log, made->counters);
  made->redis = redis::open(redis_url(), {.env = env});
  made->db = sqlite::open(dir_.file("service.db"), {.env = env, .busy_timeout = std::chrono::seconds(60)});
  auto service = with.service;
  service.key_prefix = prefix_;
  made->locks = std::make_unique<advisory_locks>(*made->redis, service);
  return made;
}

void redis_lock_world::clear() {
  const auto client = redis::open(redis_url());
  for (const auto& key : client->run({"KEYS", prefix_ + ":*"}).items) client->run({"DEL", key.text});
  dir_.clear();
  create_tables(*open()->db);
}

redis_lock_world::~redis_lock_world() {
  try {
    clear();
  } catch (const std::exception&) {  // a server that has gone keeps nothing
  }
}

void redis_lock_world::pass(duration by) {
  time.advance(by);
  const auto client = redis::open(redis_url());
  const auto by_ms = std::chrono::duration_cast<std::chrono::milliseconds>(by).count();
  for (const auto& key : client->run({"KEYS", prefix_ + ":lock:*"}).items) {
    const auto left = client->run({"PTTL", key.text}).integer;
    if (left >= 0)
      client->run({"PEXPIRE", key.text, std::to_string(std::max<std::int64_t>(left - by_ms, 0))});
  }
}

}  // namespace settle::test
