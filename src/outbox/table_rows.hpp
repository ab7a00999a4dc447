// The table relay's decisions, pure: what message a row makes, what became of each row after a publish, and
// which keys wait because one of their messages was rejected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "retry/backoff.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"
#include "settle/table_relay.hpp"

namespace settle::outbox {

struct table_row {
  std::string id;
  std::string key;
  std::int64_t attempts = 0;  // before this one, as the table knows it
  std::string topic = {};     // as its column has it; empty if there is none
};

// What waits together: the rows of a topic and key, or a row without a key alone. The same text as in
// table_sql.cpp.
std::string wait_key(const table_row& of);
int share_of(const table_row& of);

// Where messages come from.
struct table_origin {
  std::string database;  // its own id
  std::string source;
};

// The message of a row of `read`. Throws settle::error if the row makes none, e.g. for want of a topic.
// Headers whose names Settle or CloudEvents write themselves get "header" in front: above all `sequence`, by
// which consumers would judge copies.
message message_of(const table_mapping& mapping, const table_origin& from, result& rows, std::size_t row,
                   timestamp now);

// A row that was not confirmed for its own sake.
struct row_failure {
  table_row row;
  std::string reason;
};

// What is to be published: of each row its message. Rows that make no message, and what is behind them, are
// left out.
struct table_batch {
  std::vector<table_row> rows;
  std::vector<message> messages;
  std::vector<row_failure> unfit;

  bool empty() const { return rows.empty() && unfit.empty(); }
};
table_batch batch_of(const table_mapping& mapping, const table_origin& from, result& found, timestamp now);

struct table_outcome {
  std::vector<table_row> published;
  std::vector<row_failure> rejected;     // at most one per topic and key: its first
  std::optional<std::string> down = {};  // why the destination takes nothing

  bool empty() const { return published.empty() && rejected.empty(); }
};
// Nobody behind a row of its key that was not confirmed counts as published, or is charged.
table_outcome judge_rows(const table_batch& sent, std::span<const publish_result> results);

// Keys whose first message was rejected wait here between two attempts.
class held_keys {
 public:
  static constexpr std::size_t keys_max = 1000;  // then nothing more is read until one may go on

  explicit held_keys(const retry::backoff& pauses) : pauses_(pauses) {}

  // The row was rejected: how many attempts that makes. Its key waits, the longer the more there were.
  std::int64_t rejected(const table_row& row, timestamp now);
  void release(const table_row& row);             // it is done, one way or another
  void drop_shares(std::span<const int> shares);  // they belong to others now
  void clear() { held_.clear(); }

  bool full(timestamp now) const;
  std::string waiting(timestamp now) const;                  // as a JSON array
  timestamp next(timestamp now, timestamp otherwise) const;  // when the next of them may go on

 private:
  struct held {
    std::string row;
    std::int64_t attempts = 0;
    int share = 0;
    timestamp until{};
  };
  bool waits(const held& one, timestamp now) const { return !pauses_.is_over(one.until, now); }
  void forget_gone(timestamp now);

  retry::backoff pauses_;
  std::map<std::string, held, std::less<>> held_;  // by wait_key
};

}  // namespace settle::outbox
