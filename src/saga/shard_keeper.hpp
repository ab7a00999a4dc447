// Which sagas of a kind this process may write: those of the shards that it owns and has fenced.
//
// Who has a lease tries. Who may write is decided in every tick's transaction: it holds the fences of its
// shards and finds its own epochs there. Whoever takes a shard over raises its fence first, and so waits for
// a tick that is under way; one whose owner was stopped in it is ended after takeover_wait.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "settle/database.hpp"
#include "sql/ownership.hpp"

namespace settle::sagas {

class shard_keeper {
 public:
  struct settings {
    std::string name;  // host, type and version, for people
    std::int64_t kind = 0;
    duration lease_ttl{};
    duration takeover_wait{};
  };
  shard_keeper(database& db, settings with);

  // Renews leases, takes over and gives back. Returns the shards that are not ours any more.
  std::vector<int> refresh(const std::stop_token& cancel);

  // In the transaction of a tick, of shards that we hold. Throws ownership_lost.
  statement fence(const std::set<int>& of) const;
  void check(const std::set<int>& of, const result& fences) const;

  // Nothing is certain any more: the fences have to be raised again before anything is read.
  void drop_all();
  void leave(transaction& tx) { owned_.release_all(tx); }

  const std::map<int, std::int64_t>& epochs() const { return fenced_; }
  const std::string& list() const { return list_; }  // of the shards, as JSON

 private:
  bool raise(int shard, std::int64_t epoch, const std::stop_token& cancel);
  bool end_stopped_owner(int shard);
  void note_held();

  database& db_;
  settings settings_;
  sql::ownership owned_;
  std::map<int, std::int64_t> fenced_;  // epochs by shard
  std::string list_ = "[]";
};

}  // namespace settle::sagas
