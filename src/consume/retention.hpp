// How long a consumer remembers what it has applied, and what it does about copies that come even later.
//
// A record may go when it is old enough and the broker will not deliver its message again: where the broker
// has no positions, age alone decides, and includes the time for which it delivers again. Copies can still
// come, from a relay that repeats or from an operator, and nobody could tell them from new messages. So the
// transaction that removes records also moves the horizon: per source, lane and partition of the broker, the
// highest place that was ever forgotten. First deliveries of a lane come in the order of their places; a
// message without a record at or below the horizon is therefore no first delivery, and never runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "consume/places.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"

namespace settle::consume {

// Keys of records as one parameter, in the form that the statements of that database take.
value list_of_keys(std::span<const std::string_view> keys, dialect of);

// A message whose record was written in the open transaction.
struct recorded {
  const delivery* what = nullptr;
  std::string_view key;  // of the record
  place at;
};

class retention {
 public:
  retention(std::string consumer, duration keep, const database& in);

  // In the batch's transaction, for each message: whether its record may have been forgotten. `highest_rows`
  // is what read_highest_horizons found after the claims.
  std::vector<bool> beyond_horizon(transaction& tx, const result& highest_rows,
                                   std::span<const recorded> fresh) const;

  // In the batch's transaction: remembers what has to be forgotten together. `keys` is the list of
  // theirs.
  void note(transaction& tx, std::span<const recorded> fresh, value keys) const;
  // A transaction with a note has committed.
  void note_committed() { numbered_ = true; }

  // What the broker is done with; to be told before note(), note_settled() and expire().
  void set_settled(std::vector<settled_partition> done);
  // So that whoever sweeps next knows it.
  void note_settled(transaction& tx) const;

  bool due() const;
  // Whether a batch is old enough to go, in any transaction. If not, the next look is due later.
  bool has_old(transaction& tx);
  // Whether it is due and nobody else is at it, until this transaction ends. Another process is not waited
  // for: it may have been stopped.
  bool may_expire(transaction& tx);
  // After that: forgets at most so many batches; how many records those were.
  std::int64_t expire(transaction& tx, std::int64_t batches_max);

 private:
  std::optional<std::int64_t> first_to_keep(transaction& tx, std::int64_t batches_max) const;
  std::string_view log_of(const delivery& of) const;
  void look_again_later();

  std::string consumer_;
  duration keep_;
  const environment& env_;
  dialect speaks_;
  std::vector<settled_partition> settled_;
  timestamp next_look_{};
  bool numbered_ = false;  // this consumer has a number for its notes
};

}  // namespace settle::consume
