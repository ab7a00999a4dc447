// What docs/guides/locks.md quotes: taking a lock, writing under its fence, keeping it, skipping what is
// held.
//
// Usage: locks <folder>      an existing, empty folder for the database files
#include <chrono>
#include <cstdio>
#include <exception>
#include <stop_token>
#include <string>

#include "settle/database.hpp"
#include "settle/error.hpp"
#include "settle/failure.hpp"
#include "settle/lock.hpp"
#include "settle/redis.hpp"
#include "settle/service.hpp"
#include "settle/sqlite.hpp"

namespace {

using namespace std::chrono_literals;

void say(const std::string& what) { std::printf("%s\n", what.c_str()); }

void report(settle::database& db, settle::locks& locks) {
  // [snippet: lock_try]
  auto taken = locks.try_acquire("nightly-report");
  if (!taken) {
    say("skipped: " + taken.holder().text());  // held by 018f…, until 2026-11-16T02:00:30.000000Z
    return;
  }
  auto tx = db.begin();
  settle::fenced(tx, *taken);  // throws ownership_lost if somebody else has taken the lock over
  tx.execute("insert into reports (day) values ($1)", {"2026-11-16"});
  tx.commit();
  taken->release();
  // [end]
}

void long_work(settle::locks& locks) {
  // [snippet: lock_keep]
  settle::background renewing(locks);  // one loop for all locks of this object

  std::stop_source lost;
  auto taken =
      locks.acquire("import", 10s,  // waits for at most ten seconds
                    {.ttl = 15s, .renew = true, .on_lost = [&](const std::string&, settle::lock_loss) {
                       lost.request_stop();
                     }});
  if (!taken) return;
  while (!lost.stop_requested()) {
    // … a piece of the work, each in a transaction that is fenced …
    break;
  }
  // [end]
}

// [snippet: lock_skip]
void handle(settle::transaction& tx, settle::advisory_locks& locks, const std::string& account) {
  auto taken = locks.try_acquire("account " + account);
  if (!taken)  // not acknowledged, tried later; other messages go on
    throw settle::handler_failed(settle::failure_class::transient, taken.holder().text());
  settle::fenced(tx, "account " + account, taken->token());
  tx.execute("update accounts set seen = seen + 1 where id = $1", {account});
}
// [end]

// [snippet: lock_elsewhere]
void ship(settle::database& warehouse, settle::redis::client& redis) {
  settle::advisory_locks locks(redis);
  auto taken = locks.try_acquire("shipping");
  if (!taken) return;
  auto tx = warehouse.begin();
  settle::fenced(tx, "shipments", taken->token());  // first of all: refused if a newer owner was here
  tx.execute("insert into shipments (order_id) values ($1)", {"order-1"});
  tx.commit();
}
// [end]

int locks(const std::string& folder) {
  auto db = settle::sqlite::open(folder + "/service.db");
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute("create table reports (day text not null)");
  tx.commit();
  settle::locks of_service(*db);
  report(*db, of_service);
  long_work(of_service);
  const auto somebody = of_service.try_acquire("nightly-report");
  report(*db, of_service);
  return db->read().execute("select count(*) from reports")[0][0].integer() == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: locks <folder>\n");
    return 2;
  }
  static_cast<void>(ship);  // these need a Redis; the tests have one
  static_cast<void>(handle);
  try {
    return locks(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "locks: %s\n", e.what());
    return 1;
  }
}
