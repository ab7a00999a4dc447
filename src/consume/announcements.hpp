// Parked messages that are due are announced before they run, in a transaction that commits first: if a
// process dies over one, that is known. Under load the transaction is that of the next batch, which commits
// anyway.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "consume/handler_runner.hpp"
#include "consume/handlers.hpp"
#include "consume/parking.hpp"
#include "consume/reporting.hpp"
#include "consume/retry_schedule.hpp"
#include "consume/work.hpp"
#include "settle/database.hpp"

namespace settle::consume {

// Messages that are about to run; nobody else looks at them for a moment.
struct announcement {
  std::vector<work> messages;
  timestamp at{};
  bool ends_unended = false;  // it takes back what was announced before and did not run
};

class announcements {
 public:
  announcements(const handler_table& handlers, const handler_runner& runner, consume::parking& where,
                retry_schedule& schedule, reporting& report)
      : handlers_(handlers), runner_(runner), parking_(where), schedule_(schedule), report_(report) {}

  // Those that are due and have a handler, in any transaction. If there are none, the schedule learns when to
  // look next.
  std::vector<work> look(transaction& look, timestamp now);
  // In the transaction that commits first.
  announcement announce(transaction& tx, std::vector<work> due, timestamp now);
  // Both at once in the transaction of a batch, before its handlers: what fails here is not their fault.
  announcement look_and_announce(transaction& tx);

  // The transaction has committed.
  void committed(announcement made);
  // It may have, and these will not run. Nobody has died over them, so that is taken back later.
  void will_not_run(const announcement& made);
  void will_not_run(const work& one) { unended_.push_back(one.parked->id); }

  // What has committed and is to run now.
  bool has_some() const { return !announced_.messages.empty(); }
  announcement take() { return std::exchange(announced_, {}); }

  // The consumer ends: what was announced will not run, and that is taken back in this transaction.
  void drop() { will_not_run(take()); }
  bool all_ended() const { return unended_.empty(); }
  void end_all(transaction& tx) const;
  void forget_unended() { unended_.clear(); }

 private:
  std::vector<work> due_and_handled(transaction& look, timestamp now);

  const handler_table& handlers_;
  const handler_runner& runner_;
  consume::parking& parking_;
  retry_schedule& schedule_;
  reporting& report_;
  announcement announced_;             // committed, and not run yet
  std::vector<std::int64_t> unended_;  // announced, and did not run, through nobody's fault
  bool others_park_ = false;           // what this consumer has no handler for
};

}  // namespace settle::consume
