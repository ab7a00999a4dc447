// The relay's work on one outbox: own shares, take ticks, read windows, publish, note progress.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "outbox/held.hpp"
#include "outbox/row_headers.hpp"
#include "outbox/store.hpp"
#include "retry/outage.hpp"
#include "settle/relay.hpp"
#include "sql/ownership.hpp"

namespace settle::inline v0 {

class relay::engine {
 public:
  engine(database& outbox, publisher& destination, const relay_options& options);

  bool run_once(const std::stop_token& cancel);
  void leave() noexcept;

  const environment& env() const { return db_.env(); }
  wakeup& arrivals() { return *arrivals_; }
  duration idle_wait() const;

 private:
  void refresh_if_due(const std::stop_token& cancel);
  bool relay_held(const std::stop_token& cancel);
  void relay_window(const outbox::share_group& group, const std::stop_token& cancel);
  std::vector<publish_result> publish(std::vector<message>& messages, const std::stop_token& cancel);
  std::vector<outbox::fate> publish_window(outbox::window& found, std::vector<publish_result>& results,
                                           const std::stop_token& cancel);
  struct sent_window {
    const outbox::share_group& group;
    const outbox::window& found;
    const outbox::window_outcome& outcome;
  };
  void hold(const sent_window& of, std::span<const outbox::fate> fates,
            std::span<const publish_result> results);
  void write_progress(transaction& tx);
  void note_progress(const std::stop_token& cancel);
  void noted(const outbox::cursor& head);
  std::set<int> in_doubt() const;  // shares in which something may have been sent that is to be sent again
  bool is_noted() const { return unnoted_.batches == 0 && reached_ == noted_; }
  std::optional<outbox::share_group> next_group() const;
  void name_source(std::vector<message>& messages) const;
  void pause_if_failed(std::span<const outbox::fate> fates, std::span<const publish_result> results);
  void lose_everything(const char* why);

  database& db_;
  publisher& destination_;
  relay_options options_;
  sql::ownership ownership_;
  std::unique_ptr<wakeup> arrivals_;
  std::string database_;  // which one the events come from
  std::unique_ptr<outbox::store> store_;
  std::map<int, outbox::cursor> reached_;  // per owned share: nothing unsent up to it
  std::map<int, outbox::cursor> noted_;    // the same as the database knows it
  outbox::cursor head_;                    // what lies up to it is durable, and may be published
  outbox::cursor previous_;                // where the last window ended
  timestamp last_arrival_{};               // when a window last had rows
  // Per owned share: up to it rows may have been sent before, by a predecessor or by us, and the answer was
  // lost.
  std::map<int, outbox::cursor> maybe_sent_;

  struct done {
    int batches = 0;
    timestamp since{};  // of the first of them
    std::int64_t events = 0;
    std::uint32_t shares = 0;              // that have published: bit per share
    std::vector<outbox::held_event> held;  // whose rows are not written yet
    std::map<int, std::string> failures;   // of the destination, by share
    bool due = false;                      // to be noted before anything else
  };
  done unnoted_;  // since the last note of progress

  outbox::held_events held_;
  bool held_had_its_turn_ = false;
  outbox::header_check headers_;

  retry::outage pause_;  // the destination refuses: everything waits
};

}  // namespace settle::inline v0
