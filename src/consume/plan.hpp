// What is to be done with each message of a batch. Pure: what is known about the messages goes in, a verdict
// on each comes out, and a failure changes the verdicts on the later messages of its key, so that none of
// them overtakes it.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "consume/caution.hpp"
#include "consume/work.hpp"
#include "settle/consume.hpp"

namespace settle::consume {

using batch = std::span<work* const>;

enum class verdict {
  run,
  duplicate,
  beyond_horizon,
  ignore,
  charge,         // it has failed: write that down
  behind,         // something of its key waits: park it
  cautious,       // it may have killed a process: park it, and it will run alone
  left_out,       // it has failed among others, or waits for one that has: it runs when they have committed
  replay,         // of a dead letter of ours
  others_replay,  // of one of another consumer
  gone,           // somebody else has run it, or is about to
};

// What the claims say: these messages are the batch's own, and what becomes of them depends on the earlier
// ones of their keys until the batch has committed.
constexpr bool is_open(verdict what) {
  return what == verdict::run || what == verdict::charge || what == verdict::behind ||
         what == verdict::cautious;
}

// Why a batch was rolled back for the sake of one of its messages, or which messages did not commit with it.
struct failure {
  std::optional<std::size_t> at;  // which one; none if it is one of several
  failed_attempt how;
  std::vector<work*> put_off = {};  // if any, nothing has failed: another process has the keys of these
  std::vector<work*> alone = {};    // if any, the others have committed, and each of these is next,
  std::vector<work*> behind = {};   // and then these, of the same keys
  bool several = false;             // so many have failed that the batch is better cut into pieces
};

// The rules of the consumer that judges.
struct judging {
  const consumer_options& options;
  timestamp now;
};

// Whether later messages of its key have to wait for it.
bool holds_its_key(const work& one, verdict as, const consumer_options& options);

// What is known about a batch's messages whose claims are new.
struct facts {
  std::vector<bool> beyond;    // for each of `fresh`: its record may have expired
  std::set<key_view> waiting;  // keys that something is parked for
  caution careful;
};

struct plan {
  std::vector<verdict> what;       // of each message
  std::vector<work*> failed = {};  // of those that are left out, the ones that have failed themselves

  // A message whose claim is new runs, unless its record may have expired, it has already failed, or
  // something of its key waits. `fresh` are the places of these messages in the batch.
  void judge_fresh(batch messages, std::span<const std::size_t> fresh, facts known, const judging& by);

  // The message at this place has failed before it did anything, and its batch goes on: the failure is
  // written down with what the others do.
  void charge(batch messages, std::size_t at, const judging& by);

  // The message at this place has failed after it did something, and all effects of the batch are taken back:
  // the others run again without it and without the later ones of its key, whatever was decided about those.
  void leave_out(batch messages, std::size_t at);

  bool has_to_run() const;

  // Once the batch has committed: what did not commit with it. Nothing, if all of it did.
  std::optional<failure> left_out_of(batch messages) const;
};

}  // namespace settle::consume
