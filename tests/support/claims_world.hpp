// A place where claims are kept, on each store, and a log of effects elsewhere that nothing constrains. A
// process opens both anew, so that tests can have several, also forked ones.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "settle/claims.hpp"
#include "settle/metrics.hpp"
#include "settle/redis.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

enum class claims_store { sqlite, postgres, redis };

struct claims_process {
  quiet_log log;
  metrics counters;
  std::unique_ptr<database> db;  // none in Redis
  std::unique_ptr<redis::client> redis;
  std::unique_ptr<database> outside;
  std::unique_ptr<claims> keys;

  // What nobody undoes.
  void act(const std::string& what) const;
  std::int64_t acted(const std::string& what) const;
};

class claims_world {
 public:
  explicit claims_world(claims_store in);
  ~claims_world();
  static std::string missing(claims_store in);

  std::unique_ptr<claims_process> open(fault_points* faults = nullptr);
  void clear();
  // Time passes, for the clock that decides about leases too.
  void pass(duration by);
  // The clock that epochs might be read from is set back. In Redis, whose clock a test cannot set, the
  // highest epoch is moved ahead of it instead.
  void set_clock_back(duration by);
  // Somebody changes a recorded body behind our back.
  void falsify_answers();
  // Whether anything is stored.
  bool is_empty();
  std::vector<std::string> redis_keys();
  std::string epoch_key() const { return prefix_ + ":epoch"; }
  // Of those in PostgreSQL.
  std::string conninfo() const { return own_->conninfo(); }

 private:
  claims_store in_;
  temp_dir dir_;
  testing::manual_time time_;
  std::optional<scratch_database> own_;
  std::string prefix_;
};

}  // namespace settle::test
