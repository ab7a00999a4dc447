// A consumer's work: fetch, claim, run handlers, commit, acknowledge; and what follows when that fails.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
#include "consume/retry_schedule.hpp"
#include "consume/seams.hpp"
#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

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

 private:
  using work = consume::work;
  using batch = consume::batch;
  using verdict = consume::verdict;
  using failure = consume::failure;
  using claimed_batch = consume::claimed_batch;

  // round.cpp: fetch, run a batch, acknowledge.
  bool run_round(const std::stop_token& cancel);
  void fetch(const std::stop_token& cancel);
  bool run_arrived(const std::stop_token& cancel);
  std::optional<failure> attempt(batch messages, const std::stop_token& cancel);
  std::optional<failure> try_once(batch messages, const std::stop_token& cancel);
  void take_done();

  // consumer.cpp: beginning and end.
  void subscribe();
  void drop_partition(const consume::partition_lost& why);
  bool sweep(const std::stop_token& cancel);
  void note_settled() noexcept;
  void end_work(const std::stop_token& cancel) noexcept;

  // What follows from failures.
  class attempts;
  void apply(batch messages, const std::stop_token& cancel);
  bool is_done(const work& one) const;

  // retry.cpp: parked messages.
  bool retry_parked(const std::stop_token& cancel);
  // Messages that are about to run; nobody else looks at them for a moment.
  struct announcement {
    std::vector<work> messages;
    timestamp at{};
    bool ends_unended = false;
  };
  std::vector<work> look_for_parked(transaction& look, timestamp now);
  void pull_parked(transaction& tx, timestamp now);
  announcement announce_due(transaction& tx);
  std::vector<work> due_and_handled(transaction& look, timestamp now);
  announcement announce(transaction& tx, std::vector<work> due, timestamp now);
  void is_announced(announcement made);
  void will_not_run(const announcement& made);
  bool run_announced(const std::stop_token& cancel);
  void try_parked(batch messages, timestamp enough, const std::stop_token& cancel);
  void settle_parked(batch messages, const std::stop_token& cancel);

  // attempt.cpp: the steps of an attempt.
  std::string_view address_of(const message& m) const { return consume::addressed_to(m, options_.name); }
  std::optional<failure> find_unfit(batch messages);
  consume::inbox::predicate alone() const;
  void take_over(const consume::fence_keeper::partitions& held, const std::stop_token& cancel);
  void note_suspect(work& one, const std::stop_token& cancel);
  claimed_batch take_parked(transaction& tx, batch messages);
  void write_down(transaction& tx, batch messages, claimed_batch& of);
  void succeeded(batch messages, const claimed_batch& of);

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
  std::vector<work*> done_;            // of this run: committed
  bool others_park_ = false;           // what this consumer has no handler for
  bool split_ = false;                 // the batch at hand was
  announcement announced_;             // committed, and not run yet
  std::vector<std::int64_t> unended_;  // announced parked messages that did not run, through nobody's fault
};

}  // namespace settle::inline v0
