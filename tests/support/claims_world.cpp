#include "support/claims_world.hpp"

#include <unistd.h>

#include <atomic>

#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"

namespace settle::test {

void claims_process::act(const std::string& what) const {
  with_fault_points(outside->env(), "outside", [&] {
    auto tx = outside->begin();
    tx.execute("insert into deeds (what) values ($1)", {what});
    tx.commit();
  });
}

std::int64_t claims_process::acted(const std::string& what) const {
  return outside->read().execute("select count(*) from deeds where what = $1", {what})[0][0].integer();
}

std::string claims_world::missing(claims_store in) {
  if (in == claims_store::postgres) return postgres_missing();
  return in == claims_store::redis ? redis_missing() : std::string();
}

claims_world::claims_world(claims_store in) : in_(in) {
  static std::atomic<int> made = 0;
  prefix_ = "test:" + std::to_string(::getpid()) + ":" + std::to_string(++made);
  if (in == claims_store::postgres) own_.emplace();
  clear();
}

claims_world::~claims_world() {
  try {
    if (in_ == claims_store::redis) clear();
  } catch (const std::exception&) {  // a server that has gone keeps nothing
  }
}

std::unique_ptr<claims_process> claims_world::open(fault_points* faults) {
  auto made = std::make_unique<claims_process>();
  const environment env{.time = &time_, .log = &made->log, .counters = &made->counters, .faults = faults};
  made->outside = sqlite::open(dir_.file("outside.db"), {.env = env});
  if (in_ == claims_store::redis) {
    made->redis = redis::open(redis_url(), {.env = env});
    made->keys = open_claims(*made->redis, {.key_prefix = prefix_});
    return made;
  }
  made->db = in_ == claims_store::postgres ? postgres::open(own_->conninfo(), {.env = env})
                                           : sqlite::open(dir_.file("service.db"), {.env = env});
  made->keys = open_claims(*made->db);
  return made;
}

void claims_world::clear() {
  dir_.clear();
  for (const auto& key : redis_keys()) redis::open(redis_url())->run({"DEL", key});
  if (in_ == claims_store::redis) redis::open(redis_url())->run({"DEL", epoch_key()});
  const auto own = open();
  auto tx = own->outside->begin();
  tx.execute("create table deeds (what text not null)");
  tx.commit();
  if (!own->db) return;
  migrate(*own->db);
  if (own_) own_->run("truncate settle.idempotency_claims");
}

// Where the server has its own clock, the ends come nearer instead.
void claims_world::pass(duration by) {
  time_.advance(by);
  if (own_)
    own_->run("update settle.idempotency_claims set lease_until = lease_until - " +
              std::to_string(by.count()));
  for (const auto& key : redis_keys())
    redis::open(redis_url())->run({"HINCRBY", key, "lease_until", "-" + std::to_string(by.count())});
}

void claims_world::set_clock_back(duration by) {
  time_.advance(-by);
  if (in_ != claims_store::redis) return;
  const auto server = redis::open(redis_url());
  const auto clock = server->run({"TIME"}).items.at(0).text;
  server->run({"SET", epoch_key(), std::to_string(std::stoll(clock) * 1'000'000 + by.count())});
}

void claims_world::falsify_answers() {
  for (const auto& key : redis_keys()) redis::open(redis_url())->run({"HSET", key, "body", "false"});
  if (in_ == claims_store::redis) return;
  auto own = open();
  auto tx = own->db->begin();
  tx.execute(in_ == claims_store::postgres ? "update settle.idempotency_claims set body = 'false'"
                                           : "update settle_idempotency_claims set body = x'00'");
  tx.commit();
}

bool claims_world::is_empty() {
  if (in_ == claims_store::redis) return redis_keys().empty();
  const auto* table =
      in_ == claims_store::postgres ? "settle.idempotency_claims" : "settle_idempotency_claims";
  return open()->db->read().execute("select 1 from " + std::string(table) + " limit 1").empty();
}

std::vector<std::string> claims_world::redis_keys() {
  std::vector<std::string> all;
  if (in_ != claims_store::redis) return all;
  for (const auto& key : redis::open(redis_url())->run({"KEYS", prefix_ + ":*"}).items)
    if (key.text != epoch_key()) all.push_back(key.text);
  return all;
}

}  // namespace settle::test
