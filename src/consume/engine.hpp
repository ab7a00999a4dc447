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
  void end_stopped_holders();

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
  std::string_view address_of(const message& m) const;
  std::optional<failure> find_unfit(batch messages);
  consume::inbox::predicate alone() const;
  void take_over(const consume::fence_keeper::partitions& held, const std::stop_token& cancel);
  void note_suspect(work& one, const std::stop_token& cancel);
  claimed_batch take_parked(transaction& tx, batch messages);
  void write_down(transaction& tx, batch messages, claimed_batch& of);
  void succeeded(batch messages, const claimed_batch& of);

  // claim.cpp: which of a batch's messages run.
  std::optional<claimed_batch> claim(transaction& tx, batch messages);
  using claim_group =
      std::vector<std::size_t>;  // messages of one topic and type, by their place in the batch
  std::vector<claim_group> claim_groups_of(batch messages, std::span<const std::string_view> keys) const;
  std::vector<parameters> claims_of(batch messages, std::span<const std::string_view> keys,
                                    std::span<const claim_group> groups) const;
  static bool judge_claims(const claim_group& group, const result& claimed, claimed_batch& of);
  // What a batch's first exchange has shown.
  struct looked_up {
    const result& horizons;
    const std::vector<result>& parked_keys;
  };
  std::vector<work*> put_off_held(batch messages, std::span<const result> parked_keys);
  void judge_fresh(transaction& tx, batch messages, const looked_up& known, claimed_batch& of);
  void take_replays(transaction& tx, batch messages, claimed_batch& of) const;
  void give_claims_back(transaction& tx, batch messages, claimed_batch& of) const;

  database& db_;
  consumer_options options_;
  consume::reporting report_;
  consume::attempt_moments moments_;
  consume::handler_table handlers_;
  consume::intake intake_;
  consume::inbox inbox_;
  consume::fence_keeper fences_;
  consume::retention retention_;
  consume::parking parking_;
  consume::retry_schedule schedule_;
  consume::pauses pauses_;
  consume::failures failures_;
  consume::charges charges_;
  consume::handler_runner runner_;
  std::vector<work*> done_;            // of this run: committed
  bool others_park_ = false;           // what this consumer has no handler for
  bool split_ = false;                 // the batch at hand was
  announcement announced_;             // committed, and not run yet
  std::vector<std::int64_t> unended_;  // announced parked messages that did not run, through nobody's fault
  consume::caution caution_;
  // Keys that another process has, by topic and key: since when, as far as this one knows.
  std::map<std::pair<std::string, std::string>, timestamp> held_elsewhere_;
  int list_claims_ = 0;  // so many batches more ask which of their claims are new, where that costs
};

}  // namespace settle::inline v0
