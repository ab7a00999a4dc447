// What the relay needs of an outbox, and what differs between databases: how rows become visible in order,
// and how progress is kept. The engine above is the same for both.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "outbox/row_headers.hpp"
#include "outbox/window.hpp"
#include "settle/database.hpp"
#include "settle/relay.hpp"
#include "sql/ownership.hpp"

namespace settle::outbox {

struct window {
  cursor end;             // where the shares stand when all of it is done
  std::int64_t upto = 0;  // the tick that it belongs to
  std::vector<window_row> rows;
  std::vector<message> messages;
  std::vector<changed_headers> changed;
};

// What a note of progress says.
struct progress {
  const sql::ownership& owned;
  const std::map<int, cursor>& reached;  // by share
  const std::map<int, cursor>& noted;    // what the last note said
  std::uint32_t published;               // shares that have published since: bit mask
};

class store {
 public:
  virtual ~store() = default;

  // In a transaction of its own if need be: how far rows may be published now.
  virtual cursor take_tick(const std::stop_token& cancel) = 0;

  // The next rows of a group, up to `head`. An empty window may still move the shares.
  virtual window read(const share_group& group, const cursor& head) = 0;

  // First thing in a write transaction: how far rows may be published once it has committed.
  virtual cursor write_tick(transaction& tx) = 0;

  // In a write transaction, under the fence: throws ownership_lost if a share has another owner.
  virtual void note(transaction& tx, const progress& what) = 0;

  // In a write transaction: where these shares stand.
  virtual std::map<int, cursor> cursors(transaction& tx, const std::map<int, sql::holding>& shares) = 0;

  // In a write transaction: removes at most so many rows that are done and older than their time.
  virtual void expire(transaction& tx, std::int64_t rows_max) = 0;

  // Whether a commit may come without a wake-up, so that it has to be looked for.
  virtual bool commits_unnoticed() const { return false; }

  // In transactions of its own, now and then.
  virtual void keep_house(const std::stop_token&) {}
};

std::unique_ptr<store> sqlite_store(database& db, const relay_options& options);
std::unique_ptr<store> postgres_store(database& db, const relay_options& options);
std::unique_ptr<store> store_of(database& db, const relay_options& options);

// The message of a row of read_window; its source is left to the caller. And what the relay itself goes by.
message message_of(result& rows, std::size_t row, std::vector<changed_headers>& changed);
window_row window_row_of(const result::row& row);

}  // namespace settle::outbox
