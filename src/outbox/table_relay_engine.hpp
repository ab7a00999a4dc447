// The table relay's work: own shares, read rows that wait, publish, mark.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "outbox/table_rows.hpp"
#include "outbox/table_sql.hpp"
#include "retry/judge.hpp"
#include "retry/outage.hpp"
#include "settle/table_relay.hpp"
#include "sql/ownership.hpp"

namespace settle::inline v0 {

class table_relay::engine {
 public:
  engine(database& db, publisher& destination, table_mapping mapping, const table_relay_options& options);

  bool run_once(const std::stop_token& cancel);
  void leave() noexcept;

  const environment& env() const { return db_.env(); }
  wakeup& arrivals() { return *arrivals_; }
  duration idle_wait() const;

 private:
  bool relay_batch(const std::stop_token& cancel);
  void look_at_table();
  void refresh_if_due(const std::stop_token& cancel);
  bool anything_waits();
  void turn(bool read_on, const std::stop_token& cancel);
  void note(transaction& tx, const outbox::row_failure& failure) const;
  outbox::table_batch read(transaction& tx);
  void send(const std::stop_token& cancel);
  void charge();
  bool is_exhausted(const outbox::table_row& row) const;
  void pause_if_down();
  void lose_everything(const char* why);
  parameters reading(std::size_t rows_max) const;
  std::size_t rows_per_read() const;
  query named(std::string_view name, const std::string& text) const { return {name, "", text}; }

  database& db_;
  publisher& destination_;
  table_mapping mapping_;
  table_relay_options options_;
  sql::ownership ownership_;
  std::unique_ptr<wakeup> arrivals_;

  std::optional<outbox::table_statements> statements_;  // once the table was looked at
  outbox::table_origin origin_;
  bool advised_ = false;

  outbox::table_batch next_;    // read, and covered by a synced commit of ours
  outbox::table_outcome done_;  // published or refused, and not yet noted in the table
  outbox::held_keys held_;
  std::size_t average_bytes_ = 16 * 1024;  // the first read is careful
  std::int64_t quiet_looks_ = 0;           // in a row

  retry::outage down_;  // the destination refuses: everything waits
};

}  // namespace settle::inline v0
