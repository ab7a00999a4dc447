// Publishing: one row in the caller's own transaction. Commit, and the event will reach every
// subscriber; roll back, and nobody will ever see it.
//
//   auto tx = db->begin();
//   tx.execute("insert into orders(id, total_cents) values ($1, $2)", {id, 4200});
//   settle::publish(tx, order_placed{id, 4200});
//   tx.commit();
//
// Nothing is sent here: a relay reads the row after the commit (settle/relay.hpp).
// Order: events of one key are first delivered in the order of these calls, if the transactions that make
// them hold a lock on that aggregate, as they do when they change its row, or ask for publish_order::strict.
// Errors: invalid_name, invalid_argument (too many headers) and payload_too_large are thrown before the
// transaction is touched.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "settle/codec.hpp"
#include "settle/database.hpp"
#include "settle/environment.hpp"
#include "settle/event.hpp"
#include "settle/ids.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct message;

enum class publish_order {
  by_own_lock,  // the caller's transaction excludes others of the same key, say by updating the aggregate's
                // row
  strict,  // wait for every other strict publish of this key to end its transaction. On SQLite there is only
           // one writing transaction at a time, and nothing to wait for.
};

struct publish_options {
  // The event's id, if the caller has one to reuse; else a new UUIDv7. Consumers deduplicate by it.
  std::optional<event_id> id = std::nullopt;

  // What this event belongs to and was caused by, and its W3C trace. Whatever is empty is taken from
  // the transaction: inside a handler, from the message being handled.
  origin cause = {};

  // Not to be sent before. It takes its place in the order of its key when its time has come; those published
  // later do not wait for it. Empty: at once.
  std::optional<timestamp> deliver_at = std::nullopt;

  publish_order order = publish_order::by_own_lock;

  // Larger payloads are refused with payload_too_large. Unit: bytes. Brokers have limits too (1 MiB is
  // what most accept); put large documents into a store and their address into the event.
  std::size_t payload_bytes_max = event_limits::payload_bytes_max_default;
};

event_id publish(transaction& tx, const event& what, const publish_options& options = {});

template <detail::event_like T>
event_id publish(transaction& tx, const T& what, const publish_options& options = {}) {
  return publish(tx, to_event(what), options);
}

// Publishes at most once per aggregate and type: a second emit of the same (topic, aggregate type, key,
// event type) is skipped, counted and logged, whoever makes it and however often, for as long as the natural
// key is kept (relay_options.natural_key_keep, 24 h after the first emit by default). The key must not be
// empty. The event id is derived from the four parts, so consumers deduplicate what slips through later,
// and the attribute `naturalkey` carries "{aggregate id}-{event type}" for those who go by that.
struct publish_once_result {
  event_id id;           // of the event that was published first
  bool skipped = false;  // true: this call published nothing
};
publish_once_result publish_once(transaction& tx, const event& what, const publish_options& options = {});

template <detail::event_like T>
publish_once_result publish_once(transaction& tx, const T& what, const publish_options& options = {}) {
  return publish_once(tx, to_event(what), options);
}

// publish() as plain data, for callers with a driver of their own: run `text` for your database with
// `values` in your transaction. Checks everything that publish() checks.
statement publish_statement(const event& what, const publish_options& options, event_id id,
                            timestamp created_at);

}  // namespace settle::inline v0

#pragma GCC visibility pop
