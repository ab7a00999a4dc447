// A consumer's work: fetch, claim, run handlers, commit, acknowledge; and what follows when that fails. It
// puts the parts of this room together and holds the database's transaction; what they decide is theirs.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "consume/announcements.hpp"
#include "consume/caution.hpp"
#include "consume/charges.hpp"
#include "consume/claimed_batch.hpp"
#include "consume/claims.hpp"
#include "consume/failures.hpp"
#include "consume/fence.hpp"
#include "consume/handler_runner.hpp"
#include "consume/handlers.hpp"
#include "consume/inbox.hpp"
#include "consume/intake.hpp"
#include "consume/parking.hpp"
#include "consume/pauses.hpp"
#include "consume/plan.hpp"
#include "consume/reporting.hpp"
#include "consume/retention.hpp"
#include "consume/retries.hpp"
#include "consume/retry_schedule.hpp"
#include "consume/seams.hpp"
#include "settle/consume.hpp"

namespace settle::inline v0 {

class consumer::engine {
 public:
  engine(database& db, broker& from, const consumer_options& options);

  void add(std::string_view topic, std::string_view type, consume::handler what);
  bool run_once(const std::stop_token& cancel);
  void leave() noexcept;
  void abandon() noexcept;

  const environment& env() const { return db_.env(); }
  const std::string& name() const { return options_.name; }
  wakeup& arrivals();
  duration idle_wait() const;
  std::vector<subscribed> subscriptions() const { return handlers_.all(); }
  consumer_counts counts() const { return report_.counts(); }
  bool has_parked() const {
    auto look = db_.read();
    return parking_.later(look).has_value();
  }

 private:
  using work = consume::work;
  using batch = consume::batch;
  using verdict = consume::verdict;
  using failure = consume::failure;
  using claimed_batch = consume::claimed_batch;

  // Messages that are tried together, and what has become of them so far.
  struct run {
    const std::stop_token& cancel;
    std::vector<work*> done = {};  // committed
    bool split = false;            // not in one transaction
  };

  // round.cpp: fetch, run a batch, acknowledge.
  bool run_round(const std::stop_token& cancel);
  void fetch(const std::stop_token& cancel);
  bool run_arrived(const std::stop_token& cancel);
  std::optional<failure> try_once(batch messages, run& in);
  void finish(const run& of);

  // consumer.cpp: beginning and end.
  void subscribe();
  void drop_partition(const consume::partition_lost& why);
  bool sweep(const std::stop_token& cancel);
  void note_settled() noexcept;
  void end_work(const std::stop_token& cancel) noexcept;

  // attempt.cpp: the steps of an attempt, and what follows when it fails.
  class attempts;
  void apply(batch messages, run& in);
  std::string_view address_of(const message& m) const { return consume::addressed_to(m, options_.name); }
  std::optional<failure> find_unfit(batch messages);
  void take_over(const consume::fence_keeper::partitions& held, const std::stop_token& cancel);
  void note_suspect(work& one, const std::stop_token& cancel);
  claimed_batch take_parked(transaction& tx, batch messages);
  void write_down(transaction& tx, batch messages, claimed_batch& of);
  void succeeded(batch messages, const claimed_batch& of, run& in);

  database& db_;
  consumer_options options_;
  consume::reporting report_;
  consume::attempt_moments moments_;
  consume::handler_table handlers_;
  consume::intake intake_;
  consume::inbox inbox_;
  consume::fence_keeper fences_;
  consume::caution caution_;
  consume::retention retention_;
  consume::parking parking_;
  consume::retry_schedule schedule_;
  consume::pauses pauses_;
  consume::failures failures_;
  consume::charges charges_;
  consume::claims claims_;
  consume::handler_runner runner_;
  consume::announcements announcements_;
  consume::retries retries_;
};

}  // namespace settle::inline v0
