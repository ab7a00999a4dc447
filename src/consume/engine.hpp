// A consumer's work: fetch, claim, run handlers, commit, acknowledge.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "consume/fence.hpp"
#include "consume/inbox.hpp"
#include "consume/retention.hpp"
#include "settle/consume.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {

class consumer::engine {
 public:
  engine(database& db, broker& from, const consumer_options& options);

  void add(std::string_view topic, std::string_view type, raw_handler handler);
  bool run_once(const std::stop_token& cancel);
  void leave() noexcept;

  const environment& env() const { return db_.env(); }
  const std::string& name() const { return options_.name; }
  wakeup& arrivals();
  duration idle_wait() const;
  consumer_counts counts() const;

 private:
  using batch = std::span<consume::held_message* const>;

  // Why a batch was rolled back for the sake of one of its messages.
  struct failure {
    std::optional<std::size_t> at;  // which one; none if COMMIT itself refused
    std::string reason;
  };

  void subscribe();
  void fetch();
  const raw_handler* handler_of(const message& m) const;

  // The deduplication keys of a batch, in its order. They view the messages where they can.
  struct dedup_keys {
    std::vector<std::string_view> all;
    std::vector<std::string> made;
  };
  dedup_keys dedup_keys_of(batch messages) const;

  void apply(batch messages, const std::stop_token& cancel);
  void apply_split(batch messages, const failure& why, const std::stop_token& cancel);
  void hold(consume::held_message& one, const std::string& why);

  std::optional<failure> attempt(batch messages, const std::stop_token& cancel);
  // What is to be done with each message of a batch.
  enum class verdict { run, duplicate, beyond_horizon, ignore };
  using verdicts = std::vector<verdict>;
  verdicts claim(transaction& tx, batch messages, std::span<const std::string_view> keys);
  std::vector<parameters> claims_of(batch messages, std::span<const std::string_view> keys,
                                    std::span<const std::size_t> order) const;
  // What a batch's first exchange has shown.
  struct looked_up {
    std::span<const std::string_view> keys;
    const result& horizons;
  };
  void judge_fresh(transaction& tx, batch messages, const looked_up& known, verdicts& all);
  std::optional<failure> run_handlers(transaction& tx, batch messages, const verdicts& what);
  void succeeded(batch messages, const verdicts& what);
  void report_skipped(const message& m, verdict why);
  bool sweep(const std::stop_token& cancel);
  void take_done();
  void acknowledge();
  std::size_t batch_limit() const;

  database& db_;
  broker& broker_;
  consumer_options options_;
  using by_type = std::map<std::string, raw_handler, std::less<>>;
  std::map<std::string, by_type, std::less<>> handlers_;  // by topic
  std::unique_ptr<subscription> subscription_;
  consume::inbox inbox_;
  consume::fence_keeper fences_;
  consume::retention retention_;
  std::vector<consume::held_message*> done_;  // of this run: committed
  std::vector<delivery_tag> unacknowledged_;  // of this and earlier runs
  timestamp unacknowledged_since_{};
  mutable std::mutex counts_mutex_;
  consumer_counts counts_;
  double handler_us_ = 0;  // running average per message
};

}  // namespace settle::inline v0
