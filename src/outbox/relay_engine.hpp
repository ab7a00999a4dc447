// The relay's work on one outbox: own shares, take ticks, read windows, publish, note progress.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outbox/window.hpp"
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
  struct window {
    std::int64_t end = 0;
    std::vector<outbox::sent_row> rows;
    std::vector<message> messages;
  };

  void refresh_if_due(const std::stop_token& cancel);
  void take_tick(const std::stop_token& cancel);
  window read_window(const outbox::share_group& group);
  message message_of(result& rows, std::size_t row);
  void relay_window(const outbox::share_group& group, const std::stop_token& cancel);
  void note_progress(std::span<const outbox::share_failure> failures, const std::stop_token& cancel);
  void write_progress(transaction& tx);
  std::optional<outbox::share_group> next_group() const;
  void expire(transaction& tx, std::int64_t rows_max);
  void pause_if_failed(const outbox::window_outcome& outcome);
  void lose_everything(const char* why);

  database& db_;
  publisher& destination_;
  relay_options options_;
  sql::ownership ownership_;
  std::unique_ptr<wakeup> arrivals_;
  std::string database_;                 // which one the events come from
  std::map<int, std::int64_t> scanned_;  // per owned share: nothing unsent at or below it
  std::int64_t tick_ = 0;                // a durable tick: rows at or below it may be published
  std::int64_t previous_ = -1;           // where the last window ended

  struct published {
    int batches = 0;
    std::int64_t events = 0;
    std::uint32_t shares = 0;  // bit per share
  };
  published unnoted_;  // since the last note of progress

  struct pause {
    std::int64_t failures = 0;  // in a row
    timestamp until{};
  };
  pause destination_pause_;            // the destination refuses: everything waits
  std::map<int, pause> share_pauses_;  // a message is refused: its share waits
};

}  // namespace settle::inline v0
