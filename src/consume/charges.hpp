// What is written down when a message fails: where it waits and for how long, or that it was given up.
// In the transaction of the caller, who says when it has committed.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "consume/fence.hpp"
#include "consume/parking.hpp"
#include "consume/pauses.hpp"
#include "consume/plan.hpp"
#include "consume/retry_schedule.hpp"
#include "consume/work.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/dead_letter.hpp"

namespace settle::consume {

// What follows from the charge of a message that had failed before. `last_success` is anybody's. Pure.
void judge_next_failure(work& one, timestamp last_success, const judging& by);

class charges {
 public:
  charges(const consumer_options& options, const environment& env, const fence_keeper& fences,
          const pauses& everybodys, const parking& where, retry_schedule& schedule)
      : options_(options),
        env_(env),
        fences_(fences),
        pauses_(everybodys),
        parking_(where),
        schedule_(schedule) {}

  // A transaction begins in which messages may be given up.
  void begin() { given_up_.clear(); }

  // Of a message that came from the broker. `dedup` is its deduplication key.
  void write(transaction& tx, const work& of, std::string_view dedup);
  // Of one that was parked.
  void write_parked(transaction& tx, work& of);
  // Of one whose record may have expired.
  void give_up_late_copy(transaction& tx, const work& of);

  // The transaction has committed, and with it these.
  std::vector<dead_letter> take_given_up() { return std::exchange(given_up_, {}); }

 private:
  bool give_up(transaction& tx, const work& of);
  void write_letter(transaction& tx, dead_letter letter);
  timestamp next_attempt(const work& of) const;

  const consumer_options& options_;
  const environment& env_;
  const fence_keeper& fences_;
  const pauses& pauses_;
  const parking& parking_;
  retry_schedule& schedule_;
  std::vector<dead_letter> given_up_;  // in the open transaction
};

}  // namespace settle::consume
