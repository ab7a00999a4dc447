// A host's work: find the sagas that are due, let them go on in one transaction, make their calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "saga/bell.hpp"
#include "saga/calls.hpp"
#include "saga/events.hpp"
#include "saga/instance.hpp"
#include "saga/mailbox.hpp"
#include "saga/reporting.hpp"
#include "saga/shard_keeper.hpp"
#include "saga/tick.hpp"
#include "settle/saga.hpp"

namespace settle::inline v0 {

class saga_host::engine {
 public:
  engine(database& db, broker* from, const saga_host_options& options);

  void add(std::shared_ptr<const detail::saga_definition> what);
  void on(std::string_view topic, std::string_view type, sagas::key_reader key_of);
  bool deliver(transaction& tx, std::string_view type, std::string_view event_id, std::string payload) const;
  std::vector<saga_id> start(transaction& tx, const detail::saga_definition& what,
                             std::span<const new_saga<std::string>> all);
  saga_id start(const detail::saga_definition& what, std::string_view entity, const std::string& input,
                const saga_start_options& options);

  bool run_once(const std::stop_token& cancel);
  void leave() noexcept;

  const environment& env() const { return db_.env(); }
  const std::string& name() const { return options_.name; }
  wakeup& arrivals();
  duration idle_wait() const;
  saga_counts counts() const { return report_.counts(); }

 private:
  using instance = sagas::instance;

  // A kind of saga that this host knows.
  struct known_kind {
    std::shared_ptr<const detail::saga_definition> what;
    sagas::shard_keeper shards;
  };

  // Sagas that go on together, with the answers that have come for them.
  struct round {
    std::map<std::int64_t, instance*> sagas = {};
    std::map<std::int64_t, std::vector<sagas::call_answer>> answers = {};
  };

  // engine.cpp
  void listen_to_replies(const detail::saga_definition& of, const detail::reply_kind& reply);
  void expect_same(transaction& tx, const detail::saga_definition& what, saga_id id,
                   const std::string& input) const;
  void add_kinds(const std::stop_token& cancel);
  void refresh(const std::stop_token& cancel);
  void forget_everything();
  bool run_events(const std::stop_token& cancel);
  bool sweep();

  // round.cpp
  round collect();
  void take_answers(round& into);
  void look(round& into);
  void take_up(round& into, transaction& look, const std::vector<sagas::stored_saga>& found);
  void find_own_calls(instance& of) const;
  // meeting.cpp
  void meet(transaction& tx, const round& of) const;
  bool may_time_out(timestamp deadline) const;
  void part(transaction& tx, std::span<instance* const> ran) const;

  // family.cpp
  struct family {
    std::vector<parameters> starts = {}, undos = {}, wakes = {};
    std::vector<std::int64_t> others = {};  // whose rows are written besides those of the tick
    std::vector<saga_id> others_by_id = {};
  };
  void read_children(transaction& tx, const round& of) const;
  family family_of(std::span<instance* const> ran, const sagas::kin_work& kin) const;
  void lock_family(transaction& tx, std::span<instance* const> ran, const family& of) const;

  void run_round(round& of, const std::stop_token& cancel);
  void commit_round(round& of, const std::stop_token& cancel);
  void check_fences(owned_transaction& tx, const round& of) const;
  void write(owned_transaction& tx, std::span<instance* const> ran, const sagas::kin_work& kin);
  void committed(std::span<instance* const> ran, std::vector<sagas::call_order> calls);
  void forget(const round& of);
  void charge(const round& of, const error& why, const std::stop_token& cancel);

  database& db_;
  saga_host_options options_;
  sagas::reporting report_;
  std::map<std::int64_t, known_kind> kinds_;
  std::mutex kinds_mutex_;  // over kinds_stored_
  bool kinds_stored_ = false;
  sagas::bell bell_;
  sagas::caution caution_;
  sagas::mailbox mail_;
  sagas::key_readers keys_;
  std::set<std::pair<std::string, std::string>> replies_;        // topics and types
  std::unique_ptr<sagas::event_intake> events_;                  // if there is a broker
  std::optional<background> events_loop_;                        // once somebody sleeps
  std::map<std::int64_t, std::unique_ptr<instance>> in_memory_;  // by number
  std::vector<sagas::call_answer> answers_;                      // that were not written down yet
  std::optional<timestamp> next_due_;
  timestamp next_sweep_{};
  sagas::call_pool calls_;
};

}  // namespace settle::inline v0
