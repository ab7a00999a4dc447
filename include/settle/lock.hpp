// Locks with a name, an owner, a time to live and a fence, in the service's own database or in Redis.
//
//   settle::locks locks(*db);
//   if (auto taken = locks.try_acquire("nightly-report")) {
//     auto tx = db->begin();
//     settle::fenced(tx, *taken);                       // this transaction commits only as the owner
//     tx.execute("insert into reports …");
//     tx.commit();
//   } else {
//     skip(taken.holder().text());                      // "held by …, until …": a value, not an exception
//   }
//
// A lock alone keeps nobody from writing: its owner may be paused for longer than the time to live, wake up
// and go on while somebody else has the lock. What keeps it from writing is the fence. Every owner gets a
// higher epoch than all before it, and fenced() checks owner and epoch inside the transaction that writes.
// Expiry only decides who may try to take over, so no clock can make two owners write: not a slow one, not
// one that jumps.
//
// Whose clock decides about expiry: on PostgreSQL the server's, on Redis the server's, on SQLite that of the
// process (environment::time), which is the one of the machine.
//
// Take a lock before the transaction begins. On SQLite there is one writer, so inside a write transaction of
// the same file asking for a lock would wait for oneself, until store_busy.
//
// Threads: `locks` may be used by any number of threads. A lock object is used by one at a time, apart from
// the renewal loop, which may run meanwhile. Transactions of any number of threads may be fenced by one lock.
// Errors: settle::error. A lock that somebody else has is a value. If the answer to a call is lost, it is
// repeated; what is thrown then says outcome_unknown(), and a lock that may have been taken ends with its
// time to live.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "settle/database.hpp"
#include "settle/ids.hpp"
#include "settle/service.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

namespace redis {
class client;
}

// What tells one holding of a lock from every other: who, and the how-manieth. Epochs of a name only grow.
struct fence_token {
  uuid owner = {};
  std::int64_t epoch = 0;
  friend bool operator==(const fence_token&, const fence_token&) = default;
};

// Who has a lock that somebody else wanted.
struct lock_holder {
  fence_token token = {};
  timestamp until = {};      // when it may be taken over, unless it is renewed
  std::string text() const;  // "held by <owner>, until <time>"
};

enum class lock_loss {
  taken,    // it is not ours any more: somebody else has it, or Redis has let it expire
  expired,  // it could not be renewed in time: somebody else may be the owner by now
};
std::string_view to_string(lock_loss why);

enum class release_outcome {
  released,
  lost,  // it was not ours any more. Harmless: the new owner keeps it
};

struct lock_options {
  // How long the lock stays with an owner that is not heard of. 1 ms to 24 h. A short one means a quick
  // take-over after a crash, and more renewals.
  duration ttl = std::chrono::seconds(30);
  // Renewed three times per ttl by the loop around the lock's service (settle::background), until it is
  // released.
  bool renew = false;
  // Called once if the lock is found lost: by that loop, by renew() or by release(), on their thread, or
  // while a renewal of the loop hangs on another one, so those of several locks may run at the same time.
  // Stop working then; correctness does not depend on it. It must not wait for the loop: ask_to_stop() is
  // fine.
  std::function<void(const std::string& name, lock_loss why)> on_lost = {};
};

// A lock that is held. Released when it goes out of scope; what then fails is logged, and the lock ends with
// its time to live.
class held_lock {
 public:
  held_lock(held_lock&&) noexcept = default;
  held_lock& operator=(held_lock&& other) noexcept;

  const std::string& name() const;
  fence_token token() const;
  // When it may be taken over unless it is renewed, by the clock of this process.
  timestamp until() const;
  // Whether it was found lost. False does not mean that it is still ours; fenced() knows.
  bool lost() const;

  // Gives it its whole time to live again. False if it is lost or was released. One that has expired is
  // renewed if nobody has taken it meanwhile.
  bool renew();
  // By its own owner and epoch only, so that it can never end somebody else's. Repeating it is harmless.
  release_outcome release();

  struct state;

 protected:
  explicit held_lock(std::shared_ptr<state> of);
  ~held_lock();

 private:
  std::shared_ptr<state> state_;
};

// A lock in a database. fenced(tx, lock) protects what is written to the same database.
class lock final : public held_lock {
 public:
  explicit lock(std::shared_ptr<state> of) : held_lock(std::move(of)) {}
};

// A lock in Redis. Advisory: Redis may forget it (a restart without its last second, a failover to a replica
// that was behind), and then two owners believe that they have it. So it saves work, and protects nothing by
// itself; fenced(tx, resource, lock.token()) protects what a database keeps.
class advisory_lock final : public held_lock {
 public:
  explicit advisory_lock(std::shared_ptr<state> of) : held_lock(std::move(of)) {}
};

// A lock, or who has it.
namespace detail {
[[noreturn]] void refuse_untaken(const lock_holder& by);
[[noreturn]] void refuse_own_holder();
}  // namespace detail

template <class Lock>
class lock_attempt {
 public:
  explicit lock_attempt(Lock taken) : what_(std::move(taken)) {}
  explicit lock_attempt(const lock_holder& by) : what_(by) {}

  explicit operator bool() const { return std::holds_alternative<Lock>(what_); }
  // If it is true. Otherwise throws ownership_lost, which says who holds the lock.
  Lock& operator*() { return *operator->(); }
  Lock* operator->() {
    if (const auto* by = std::get_if<lock_holder>(&what_)) detail::refuse_untaken(*by);
    return std::get_if<Lock>(&what_);
  }
  // If it is false. Otherwise throws unexpected_result.
  const lock_holder& holder() const {
    if (const auto* by = std::get_if<lock_holder>(&what_)) return *by;
    detail::refuse_own_holder();
  }

 private:
  std::variant<Lock, lock_holder> what_;
};

struct lock_service_options {
  // A waiting caller looks at the lock after pauses that grow from 2 ms to this, give or take a half. Only
  // the first of those who wait for one name in this object looks; a release here wakes it at once.
  duration poll_max = std::chrono::milliseconds(100);
  // PostgreSQL: how long a take-over waits for a fenced transaction of the former owner that is under way.
  // Then the lock is reported as held. An owner that was stopped in the middle of one is ended by the
  // server's idle_in_transaction_session_timeout, if that is set.
  duration takeover_wait = std::chrono::seconds(1);
  // Redis: what its keys begin with.
  std::string key_prefix = "settle";
};

// What both kinds share: the loop that renews. settle::background loop(locks) runs it.
class lock_service : public service {
 public:
  ~lock_service() override;

  // Renews what asked for it and is due, and tells owners what they have lost. Always false: it sleeps until
  // the next one is due.
  bool run_once(std::stop_token cancel = {}) override;

  std::string_view name() const override { return "locks"; }
  const environment& env() const override;
  wakeup& arrivals() override;
  duration idle_wait() const override;

  struct engine;

 protected:
  explicit lock_service(std::shared_ptr<engine> with);
  using state_or_holder = std::variant<std::shared_ptr<held_lock::state>, lock_holder>;
  state_or_holder take(std::string_view name, const lock_options& with);
  state_or_holder wait_for(std::string_view name, duration at_most, const lock_options& with,
                           const std::stop_token& stop);

  template <class Lock>
  static lock_attempt<Lock> as_attempt(state_or_holder found) {
    if (auto* taken = std::get_if<0>(&found)) return lock_attempt<Lock>(Lock(std::move(*taken)));
    return lock_attempt<Lock>(std::get<1>(found));
  }

 private:
  std::shared_ptr<engine> engine_;
};

// Locks in a database that migrate() has seen. It must outlive this object and the locks that it gave.
class locks final : public lock_service {
 public:
  explicit locks(database& db, const lock_service_options& options = {});

  // At once. Names have 1 to 255 bytes. One statement, one round trip.
  lock_attempt<lock> try_acquire(std::string_view name, const lock_options& with = {}) {
    return as_attempt<lock>(take(name, with));
  }
  // Waits in order of arrival within this object. Throws errc::cancelled if it is stopped.
  lock_attempt<lock> acquire(std::string_view name, duration at_most, const lock_options& with = {},
                             const std::stop_token& stop = {}) {
    return as_attempt<lock>(wait_for(name, at_most, with, stop));
  }
};

// The same in Redis; the client must outlive it.
class advisory_locks final : public lock_service {
 public:
  explicit advisory_locks(redis::client& in, const lock_service_options& options = {});

  lock_attempt<advisory_lock> try_acquire(std::string_view name, const lock_options& with = {}) {
    return as_attempt<advisory_lock>(take(name, with));
  }
  lock_attempt<advisory_lock> acquire(std::string_view name, duration at_most, const lock_options& with = {},
                                      const std::stop_token& stop = {}) {
    return as_attempt<advisory_lock>(wait_for(name, at_most, with, stop));
  }
};

// In a transaction on the database that has the lock: throws ownership_lost unless it is still its owner's.
// Until the transaction ends nobody can take the lock over: a take-over waits for the commit, or is seen
// here. Renewals and other fenced transactions of the same lock do not wait. On PostgreSQL a rollback to a
// savepoint from before this call ends that: call it before any savepoint that you may return to, or again
// afterwards.
void fenced(transaction& tx, const lock& by);

// The same for data in another database than the lock: remembers the highest token seen per resource, in the
// transaction, and throws ownership_lost for a lower one. The first fenced transaction of a new owner shuts
// out all before it; until then a former one may still write. So fence first, and read what the write depends
// on afterwards, in the same transaction. Transactions on one resource go one after the other.
//
// With tokens of an advisory_lock: if Redis forgets a lock, two owners may have it at the same time, but
// never the same token, and tokens grow even if Redis forgets its counter as well, as long as its clock does
// not go back. If that has happened, new owners are refused until the clock is past the remembered token.
void fenced(transaction& tx, std::string_view resource, const fence_token& token);

// A lock in a database as operators see it.
struct lock_record {
  std::string name;
  fence_token token = {};                         // of its owner, or of the last one
  std::optional<timestamp> until = std::nullopt;  // none: it was released
  bool expired = false;  // anybody may take it over; as long as nobody has, its owner may renew it
};

// By name, those behind `after`. Without `released`, those that have an owner. For operators: names are not
// forgotten, so there may be many.
std::vector<lock_record> list_locks(database& db, bool released = false, std::size_t at_most = 100,
                                    std::string_view after = {});
std::optional<lock_record> find_lock(database& db, std::string_view name);

// Takes the lock away from the owner that was seen, for operators who know that it will not come back or must
// not go on. The epoch is raised, so it cannot write under its fence, renew or release it any more; its
// fenced transaction that is under way is waited for (PostgreSQL: store_busy after busy_timeout). False: it
// was released or has another owner by now, and nothing was changed.
bool take_lock_away(database& db, std::string_view name, const fence_token& seen);

}  // namespace settle::inline v0

#pragma GCC visibility pop
