// Consuming: each message is applied exactly once per consumer, whatever is delivered twice.
//
//   settle::consumer warehouse(*db, *broker, {.name = "warehouse"});
//   warehouse.on<order_placed>([](const order_placed& e, settle::transaction& tx) {
//     tx.execute("insert into shipments(order_id) values ($1)", {e.order_id});
//     settle::publish(tx, shipment_requested{e.order_id});
//   });
//   settle::background loop(warehouse);
//
// The claim on the message, the handler's writes and the events it publishes commit in one transaction;
// the message is acknowledged afterwards. A crash anywhere leaves either all of it or nothing of it,
// and the message is delivered again. The handler cannot commit by itself.
//
// Handlers run one at a time per consumer object, several messages per transaction. Effects outside
// the transaction (a mail, a payment) are not covered: they may repeat.
// A handler that throws is rolled back alone and tried again, with growing pauses, until it succeeds;
// meanwhile later messages of its key wait, and other keys go on.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "settle/broker.hpp"
#include "settle/codec.hpp"
#include "settle/database.hpp"
#include "settle/error.hpp"
#include "settle/service.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// Where the deduplication key of a message comes from.
enum class dedup_key {
  message_id,          // the message's own id
  aggregate_and_type,  // "{aggregate id}-{event type}", for sources that give every copy a new id
};

struct consumer_options {
  // The consumer's name: its group at the broker and its name in the deduplication records. Two
  // processes with one name share the work; two names each get everything.
  std::string name;
  // Topics to listen to. Empty: those of the handlers' event types.
  std::vector<std::string> topics = {};
  dedup_key key = dedup_key::message_id;
  // Messages per transaction. More is faster; a failure rolls back and splits the batch.
  std::size_t batch_max = 64;
  // Target for the handlers' time in one transaction: slower handlers get smaller batches, so that
  // locks are held for about this long.
  duration batch_time = std::chrono::milliseconds(20);
  // Messages held in memory, the waiting ones of failing keys among them. When it is full of waiting
  // ones, the consumer fetches no more until one of them succeeds.
  std::size_t in_flight_max = 1024;
  // Pause after the n-th failure of a message: n² times this, at most retry_wait_max.
  duration retry_wait = std::chrono::milliseconds(100);
  duration retry_wait_max = std::chrono::seconds(30);
  // How long the records that recognise copies are kept at least; they stay until the broker is done with
  // their messages. A copy that comes later still is recognised by its number and does not run, it is only
  // counted as beyond_horizon. Longer costs disk space: about 200 bytes per message.
  duration dedup_keep = std::chrono::hours(24);
  // How long to wait for the batch of a partition's former owner. One that takes longer has been stopped, or
  // its machine hangs: on PostgreSQL its session is ended then, which rolls the batch back, and this consumer
  // goes on (its role must be allowed to pg_terminate_backend the other, so let them be the same). On SQLite
  // the wait is the database's busy_timeout, and store_busy names the process.
  duration takeover_wait = std::chrono::seconds(10);
  // How often to look without a wake-up.
  duration idle_poll = std::chrono::milliseconds(500);
};

// What a consumer has done since it was made.
struct consumer_counts {
  std::int64_t applied = 0;         // handlers run and committed
  std::int64_t duplicates = 0;      // deliveries skipped because their key was already applied
  std::int64_t beyond_horizon = 0;  // deliveries not run because their record may have expired
  std::int64_t ignored = 0;         // messages of a type without a handler
  std::int64_t failures = 0;        // attempts that failed alone
  std::size_t held = 0;             // messages waiting after a failure, now
};

class consumer final : public service {
 public:
  using raw_handler = std::function<void(const message&, transaction&)>;

  consumer(database& db, broker& from, const consumer_options& options);
  ~consumer() override;

  // A handler for a typed event: (const T&, transaction&) or (const T&, transaction&, const message&).
  template <encodable T, class Handler>
  consumer& on(Handler handler) {
    add(codec<T>::topic, codec<T>::type, [handler = std::move(handler)](const message& m, transaction& tx) {
      const T decoded = decode<T>(m);
      if constexpr (std::invocable<const Handler&, const T&, transaction&, const message&>)
        handler(decoded, tx, m);
      else
        handler(decoded, tx);
    });
    return *this;
  }

  // A handler for raw messages of one type on one topic. An empty type: of every type that has no handler of
  // its own there.
  consumer& on(std::string_view topic, std::string_view type, raw_handler handler);

  // Fetches, applies one batch, acknowledges. False when nothing could be done now.
  bool run_once(std::stop_token cancel = {}) override;

  consumer_counts counts() const;

  std::string_view name() const override;
  const environment& env() const override;
  wakeup& arrivals() override;
  duration idle_wait() const override;
  void leave() noexcept override;

 private:
  template <class T>
  static T decode(const message& m) {
    try {
      return codec<T>::decode(m.payload);
    } catch (const std::exception& e) {
      throw error(errc::decode_failed, "event " + m.id + " of type " + m.type + ": " + e.what());
    }
  }
  void add(std::string_view topic, std::string_view type, raw_handler handler);

  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<engine> engine_;
};

}  // namespace settle

#pragma GCC visibility pop
