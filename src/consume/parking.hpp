// Messages that have failed alone wait in the consumer's database, and later ones of their keys behind them,
// so that everybody else goes on. The broker is done with a parked message: the transaction that parked it
// has claimed it, and whoever retries it takes its row away in the transaction of its effects.
//
// Every retry is announced before it runs, in a transaction that commits first. A message that was announced
// and did not end took its process with it: it runs alone from then on, and after three times it is given up
// (retry/crashes.hpp).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consume/retry_schedule.hpp"
#include "consume/work.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"

namespace settle::consume {

// Between the announcement and the transaction that runs them nobody holds the keys.
constexpr duration announced_for = std::chrono::seconds(5);

class parking {
 public:
  parking(std::string consumer, dialect speaks) : consumer_(std::move(consumer)), speaks_(speaks) {}

  // Of a batch's messages, the keys that something waits for, as topic and key; perhaps others as well. On
  // PostgreSQL their rows are locked then, unless the third column says that another process has them. The
  // first look is part of the batch's first exchange; what it found may need a second one.
  statement first_look(std::span<work* const> messages) const;
  std::vector<result> look(transaction& tx, result first, std::span<work* const> messages);

  // Ends the session of another process that has this key, if its transaction is older than `too_long`.
  void end_stopped_holder(database& db, std::string_view topic, std::string_view key,
                          duration too_long) const;

  // Takes a message in. `log` is the partition it came from, `dedup` its deduplication key.
  struct entry {
    const work& of;
    std::string_view log;
    std::string_view dedup;
    std::int64_t attempts = 0;
    std::int64_t starts = 0;
    std::vector<failed_attempt> history = {};
    std::int64_t charged = 0;
  };
  void add(transaction& tx, const entry& what) const;
  // Its key waits from now on: until then, or until an operator lets it go on.
  void hold_key(transaction& tx, const message& m, std::string_view dedup,
                std::optional<timestamp> until) const;

  // Up to `most` messages that may be tried now, in order; those that have killed a process come alone.
  // If `handled` is not empty, only keys whose first message is of one of these kinds. Keys that another
  // process had at the last announcement are passed over for a while.
  std::vector<work> due(transaction& look, std::size_t most, timestamp now,
                        std::span<const subscribed> handled) const;
  // When the first and the last one may be tried that may not yet.
  std::optional<retry_schedule::range> later(transaction& look) const;
  // Whatever was to wait until after `latest` is due now: a clock was set back.
  void pull(transaction& tx, timestamp now, timestamp latest) const;

  // Announces that these are about to run, and nobody else looks at them for a moment. Those that somebody
  // else works on are left out of the answer.
  std::vector<work*> start(transaction& tx, std::span<work* const> messages, timestamp now);

  // For each: whether its row was taken away, so that it may run in this transaction. False: somebody else
  // works on its key, or has run it.
  std::vector<bool> take(transaction& tx, std::span<work* const> messages) const;
  // The same without taking it, for one that is to be written to. False also if others have tried it since.
  std::vector<bool> keep(transaction& tx, std::span<work* const> messages) const;

  // It has failed once more.
  void charge(transaction& tx, const work& of, const std::vector<failed_attempt>& history,
              timestamp next) const;
  void give_up(transaction& tx, const work& of) const;
  void block_key(transaction& tx, const message& key_of) const;
  // They were announced, and did not run.
  void end(transaction& tx, std::span<const std::int64_t> ids) const;
  static statement end_of(std::span<const std::int64_t> ids);

  // Those behind them are next.
  void go_on(transaction& tx, std::span<work* const> done, timestamp now) const;
  void go_on(transaction& tx, const message& key_of, std::string_view single, timestamp now) const;

 private:
  static std::vector<key_view> keys_of(std::span<work* const> messages);
  std::vector<bool> lock(transaction& tx, std::span<work* const> messages) const;

  std::string consumer_;
  dialect speaks_;
  std::map<std::array<std::string, 3>, timestamp> elsewhere_;  // topic, key and single: until when
  int many_ = 0;  // for so many batches more: too many keys wait to read them all
};

}  // namespace settle::consume
