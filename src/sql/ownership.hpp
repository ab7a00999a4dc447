// Fenced ownership of numbered shares of work: the lanes of an outbox, the partitions of a topic.
//
// Members of a scope divide its shares evenly. Each share has one owner under a lease and an epoch that
// grows with every change of owner. The lease only decides who tries; the epoch decides who may write:
// advance() changes nothing for an owner that was replaced, however long it was asleep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "settle/database.hpp"
#include "settle/error.hpp"
#include "settle/ids.hpp"
#include "sql/presence.hpp"

namespace settle::sql {

struct share_row {
  int share = 0;
  std::int64_t position = 0;
  std::string owner;  // empty: nobody
  std::int64_t epoch = 0;
  timestamp lease_until{};
};

struct ownership_plan {
  std::vector<int> claim;
  std::vector<int> release;
  friend bool operator==(const ownership_plan&, const ownership_plan&) = default;
};

// Which leases run: those that end in it. One that ends later was written before the clock was set back, and
// waiting for its end could take as long as that.
struct running_leases {
  timestamp now;
  timestamp latest;
  bool include(timestamp end) const { return end > now && end <= latest; }
};

// Members may have different leases and, on several machines, clocks: the longest lease that settled allows
// is an hour. One that others do not believe only means that shares change hands for nothing; the epoch keeps
// that correct.
constexpr duration lease_believed_min = std::chrono::minutes(65);
constexpr int lease_believed_ttls = 4;

// How often a member looks whether another one's process has ended.
constexpr duration look_every = std::chrono::seconds(1);

inline running_leases running_at(timestamp now, duration own_ttl) {
  return {now, now + std::max<duration>(lease_believed_ttls * own_ttl, lease_believed_min)};
}

// Pure: what `me` should claim and release so that all members end with an even part.
ownership_plan plan_ownership(std::span<const share_row> shares, std::int64_t members_alive,
                              const std::string& me, const running_leases& running);

struct holding {
  std::int64_t epoch = 0;
  std::int64_t position = 0;
};

struct ownership_change {
  std::vector<int> gained;
  std::vector<int> lost;
  std::vector<int> taken_over;  // of the gained: those that their last owner has not given back
};

class ownership {
 public:
  struct settings {
    std::string scope;
    int shares = 0;
    duration lease_ttl{};
  };
  ownership(database& db, settings with);

  // Whether it is time to call refresh(): at the start, three times per lease, after a loss, when the clock
  // was set back, and when another member has left or its process has ended. Not in a transaction: it may
  // show this member to others (see presence.hpp), which can take a connection.
  bool due();

  // In a write transaction: renews, claims what is free, releases what is more than our part.
  // What it decided counts only once applied() is called after the commit. Who gets a share of `in_doubt`
  // finds it taken over, not given back, and need not wait for a lease all the same.
  ownership_change refresh(transaction& tx, const std::set<int>& in_doubt = {});
  void applied();

  // In a write transaction: moves positions, under the fence. Throws ownership_lost, naming the first
  // share that is not ours any more, and leaves it to the caller to roll back.
  void advance(transaction& tx, const std::map<int, std::int64_t>& positions) const;

  // In a write transaction: throws as advance() does if any share is not ours any more, and moves nothing.
  // Until the transaction ends nobody else can take one over.
  void confirm(transaction& tx) const;

  // In a write transaction: a share that could not move on, and why.
  void note_failure(transaction& tx, int share, const std::string& why) const;

  // Forgets everything held, e.g. after ownership_lost; the next refresh() finds out what is ours.
  std::vector<int> drop_all();

  // In a write transaction: gives everything back; `in_doubt` as above.
  void release_all(transaction& tx, const std::set<int>& in_doubt = {}) const;

  const std::map<int, holding>& held() const { return held_; }
  const std::map<int, holding>& next_held() const { return next_held_; }  // as refresh() decided
  const std::string& member() const { return member_; }

 private:
  bool somebody_left(timestamp now);
  void show_myself();
  void forget_gone_members(transaction& tx);
  void ensure_shares(transaction& tx) const;
  void release(transaction& tx, int share, std::int64_t epoch, const std::set<int>& in_doubt) const;
  error lost(int share) const;

  struct scope_state {
    std::vector<share_row> shares;
    std::int64_t members_alive = 0;
  };
  scope_state read(transaction& tx, const running_leases& running) const;

  database& db_;
  settings settings_;
  member_register* register_;
  std::string member_;
  std::unique_ptr<presence> presence_;
  bool introduced_ = false;          // under a name that is not changed any more
  std::vector<std::string> others_;  // of the scope, at the last refresh
  timestamp next_look_{};            // after them
  std::map<int, holding> held_;
  std::map<int, holding> next_held_;
  timestamp next_refresh_{};
};

}  // namespace settle::sql
