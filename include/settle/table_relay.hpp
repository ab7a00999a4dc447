// A relay for an outbox table that is there already: its columns are mapped, and nothing is added to it.
//
//   auto orders = settle::status_table("public.order_events");    // the usual names …
//   orders.key = "order_id";                                      // … but for this one
//   settle::table_relay relay(*db, broker->publishing(), orders);
//   settle::background loop(relay);
//
// PostgreSQL only. Settle's own tables must be in the same database (settle::migrate): relays divide the keys
// by leases that they hold there, and check the lease's fence in the transaction that marks rows as
// published.
//
// Guarantees: every row that is committed as pending is confirmed by the broker at least once, however late
// its transaction commits; nothing that rolled back; any number of relays; a broker that is down costs no
// attempt. A message that the broker rejects is tried attempts_max times while later ones of its topic and
// key wait, then it is set to FAILED, if the table has such a state.
//
// What somebody else's table cannot give (docs/guides/existing_tables.md has the reasons):
//   - Order of a key holds for transactions that do not overlap, and only if `order_by` grows from one to the
//     next: a sequence with CACHE 1 does, a random UUID does not, a timestamp does not within a transaction.
//   - Messages carry no sequence number. A copy that comes after the consumer's deduplication record has
//     expired is not recognised.
//   - A row that is deleted before a relay has seen it is never published.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/service.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// Where an attribute of the messages comes from: `text`, and behind it what the column holds. Without a
// column it is the same text for every row.
struct table_value {
  std::string column = {};
  std::string text = {};
};

enum class after_publish {
  mark,    // the row stays and says that it is published
  remove,  // the row is deleted
};

// Which column means what. Names are as the catalogue has them, without quotes. An empty name: there is no
// such column.
struct table_mapping {
  std::string table;      // "schema.table"
  std::string id = "id";  // unique; rows are marked or removed by it
  // Rows are published in this order, then by id. Empty: by id alone.
  std::string order_by = {};

  // The message's id, by which consumers deduplicate: unique over everything that a consumer receives.
  // Empty: the id column if it holds UUIDs, else a UUID that is derived from database, table and id.
  std::string event_id = {};
  table_value topic = {};
  table_value type = {};
  table_value aggregate_type = {};
  std::string key = {};      // the aggregate's id. Without it, or where it is null, there is no order
  std::string payload = {};  // bytea, text, json or jsonb; null is an empty payload
  std::string headers = {};  // a JSON object as json, jsonb or text
  std::string content_type = "application/json";
  std::string created_at = {};  // timestamptz, or timestamp in UTC; without it: when the relay read the row

  // How a row says that it waits: the first of these three that is named decides. None of them: every row
  // waits, and after_publish has to be `remove`.
  std::string status = {};        // holds one of the words below; text, an enum or a number
  std::string published = {};     // boolean
  std::string published_at = {};  // null while it waits; also set beside the two above
  std::string pending_word = "PENDING";
  std::string published_word = "PUBLISHED";
  // Empty: no such state, or no status column. Then a rejected message holds its key until it is accepted or
  // somebody takes it away.
  std::string failed_word = "FAILED";
  settle::after_publish after_publish = settle::after_publish::mark;

  std::string attempts = {};  // integer. Without it attempts are counted in memory, from zero after a restart
  std::string last_error = {};  // text
};

// A table with a status: id, topic, aggregate_type, aggregate_id, event_type, event_id, payload, headers,
// status, created_at, published_at, attempts, last_error. Change what differs, empty what is not there.
table_mapping status_table(std::string table);

// A table as Debezium's outbox event router reads it: id (uuid), aggregatetype, aggregateid, type, payload.
// The topic is "outbox.event." and the aggregate type; rows are removed when the broker has confirmed them.
// It has no column to order by: name one in `order_by` (a timestamp, a serial), or no order is kept.
table_mapping debezium_table(std::string table);

struct table_relay_options {
  // The CloudEvents source of the messages. Empty: "settle:", the database's own id, "/" and the table.
  std::string source = {};
  // Rows per batch: one read, one publish, one update.
  std::size_t batch_max = 500;
  // Payload bytes per batch, roughly: as many rows are read as the last ones let expect to fit.
  std::size_t batch_bytes_max = 4 * 1024 * 1024;
  // How often a message is tried that the broker rejects, before it is FAILED.
  int attempts_max = 5;
  // How long a silent owner keeps its part before another relay takes over. Renewed three times in this time.
  duration lease_ttl = std::chrono::seconds(10);
  // How often to look when the table has been quiet. Nobody tells us of commits to a foreign table, so while
  // rows come in the relay looks more often, at first after 5 ms.
  duration idle_poll = std::chrono::milliseconds(500);
  // How long the broker may take to confirm a batch. What it has not confirmed by then is sent again.
  duration publish_timeout = std::chrono::seconds(30);
  // Longest pause between two attempts, at a message or at a destination that is down.
  duration retry_wait_max = std::chrono::seconds(30);
};

class table_relay final : public service {
 public:
  // Throws invalid_argument for a mapping that can fit no table. Whether it fits this one is looked up at the
  // first run_once(), which throws invalid_argument with what is missing and what is there instead.
  table_relay(database& db, publisher& destination, table_mapping mapping,
              const table_relay_options& options = {});
  ~table_relay() override;

  // One batch: read, publish, mark. False when nothing was waiting.
  bool run_once(std::stop_token cancel = {}) override;

  std::string_view name() const override { return "table_relay"; }
  const environment& env() const override;
  wakeup& arrivals() override;
  duration idle_wait() const override;
  void leave() noexcept override;

 private:
  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<engine> engine_;
};

}  // namespace settle::inline v0

#pragma GCC visibility pop
