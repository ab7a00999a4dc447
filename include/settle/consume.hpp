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
// the transaction (a mail, a payment) are not covered: they may repeat. A handler that has such effects says
// so, {.effects = handler_effects::outside}, and runs in a transaction of its own: it is then never repeated
// because of a neighbour.
//
// A handler that throws is rolled back alone. What follows depends on the failure (settle/failure.hpp): the
// message is parked and tried again with growing pauses, while later messages of its key wait behind it and
// other keys go on; or it becomes a dead letter (settle/dead_letter.hpp); or, if something is away that
// everybody needs, the consumer pauses and charges nobody.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "settle/broker.hpp"
#include "settle/codec.hpp"
#include "settle/database.hpp"
#include "settle/error.hpp"
#include "settle/failure.hpp"
#include "settle/service.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// Where the deduplication key of a message comes from.
enum class dedup_key {
  message_id,          // the message's own id
  aggregate_and_type,  // "{aggregate id}-{event type}", for sources that give every copy a new id
};

// What becomes of a key when one of its messages is given up.
enum class on_exhausted {
  continue_key,  // later ones go on; a replay comes out of order and says so (extension settleoutoforder)
  block_key,     // later ones wait until a replay of the dead letter was applied
};

enum class handler_effects {
  inside,   // all in the transaction
  outside,  // also elsewhere
};

struct handler_options {
  handler_effects effects = handler_effects::inside;
};

struct consumer_options {
  // The consumer's name: its group at the broker and its name in the deduplication records. Two
  // processes with one name share the work; two names each get everything.
  std::string name;
  // Topics to listen to. Empty: those of the handlers' event types. Given, it is a declaration that the
  // handlers are held to: one for another topic is refused, and so is a topic that has none.
  std::vector<std::string> topics = {};
  dedup_key key = dedup_key::message_id;
  // Messages per transaction. More is faster; a failure rolls back and splits the batch.
  std::size_t batch_max = 64;
  // Target for the handlers' time in one transaction: slower handlers get smaller batches, so that
  // locks are held for about this long.
  duration batch_time = std::chrono::milliseconds(20);
  // Messages held in memory.
  std::size_t in_flight_max = 1024;
  // Pause after the n-th failure of a message: n² times this, at most retry_wait_max, and up to retry_jitter
  // of it longer, so that messages that failed together are not all tried again at once.
  duration retry_wait = std::chrono::milliseconds(100);
  duration retry_wait_max = std::chrono::seconds(30);
  double retry_jitter = 0.2;
  // Asked first what a failure is; nothing: class_of() decides.
  std::function<std::optional<failure_class>(const std::exception&, const message&)> classify = {};
  // A message that fails for unknown reasons (poison) is a dead letter after so many failures.
  std::int64_t attempts_max = 5;
  // One that fails for passing reasons (transient) is one after so long.
  duration transient_max_age = std::chrono::hours(24);
  settle::on_exhausted on_exhausted = on_exhausted::continue_key;
  // A handler that takes longer is stopped: its statement is cancelled, nothing of it commits, and it has
  // failed. One that hangs outside of the database cannot be stopped, only kept from committing.
  duration handler_timeout = std::chrono::seconds(30);
  // Pause after the n-th outage in a row: n² times this, at most outage_wait_max. Then one message is tried.
  duration outage_wait = std::chrono::milliseconds(100);
  duration outage_wait_max = std::chrono::seconds(10);
  // Of the program; noted in dead letters.
  std::string version = {};
  // How long the records that recognise copies are kept at least; they stay until the broker is done with
  // their messages. A copy that comes later still is recognised by its number and does not run: it becomes a
  // dead letter. Longer costs disk space: about 200 bytes per message.
  duration dedup_keep = std::chrono::hours(24);
  // How long to wait for the batch of a partition's former owner. One that takes longer has been stopped, or
  // its machine hangs: on PostgreSQL its session is ended then, which rolls the batch back, and this consumer
  // goes on (its role must be allowed to pg_terminate_backend the other, so let them be the same). On SQLite
  // the wait is the database's busy_timeout, and store_busy names the process.
  duration takeover_wait = std::chrono::seconds(10);
  // How long a call to the broker may take. One that takes longer has failed, and is made again after a
  // pause.
  duration broker_timeout = std::chrono::seconds(30);
  // How often to look without a wake-up.
  duration idle_poll = std::chrono::milliseconds(500);
};

// One thing that a consumer listens to.
struct subscribed {
  std::string topic;
  std::string type;  // empty: every type that has no handler of its own there
  friend bool operator==(const subscribed&, const subscribed&) = default;
};

// What a consumer has done since it was made.
struct consumer_counts {
  std::int64_t applied = 0;         // handlers run and committed
  std::int64_t duplicates = 0;      // deliveries skipped because their key was already applied
  std::int64_t beyond_horizon = 0;  // deliveries not run because their record may have expired
  std::int64_t ignored = 0;         // messages of a type without a handler
  std::int64_t failures = 0;        // attempts that failed alone
  std::int64_t parked = 0;          // messages that had to wait: after a failure, or behind one of their key
  std::int64_t dead_letters = 0;    // given up
  std::int64_t replays = 0;         // dead letters that were replayed to this consumer and ran; also applied
  std::int64_t others_replays = 0;  // replays that were addressed to another one
  std::int64_t pauses = 0;          // outages
};

class consumer final : public service {
 public:
  using raw_handler = std::function<void(const message&, transaction&)>;
  using raw_batch_handler = std::function<void(std::span<const message* const>, transaction&)>;

  consumer(database& db, broker& from, const consumer_options& options);
  ~consumer() override;

  // A handler for a typed event: (const T&, transaction&) or (const T&, transaction&, const message&).
  template <class T, class Handler>
  consumer& on(Handler handler, const handler_options& options = {}) {
    constexpr bool with_message = std::invocable<const Handler&, const T&, transaction&, const message&>;
    constexpr bool fits = with_message || std::invocable<const Handler&, const T&, transaction&>;
    detail::require_codec<T>();
    static_assert(fits,
                  "settle: a handler of consumer::on<T> takes (const T&, settle::transaction&) or (const T&, "
                  "settle::transaction&, const settle::message&), and is not mutable");
    if constexpr (fits && encodable<T>) {
      if (detail::is_empty(handler)) return on(codec<T>::topic, codec<T>::type, raw_handler(), options);
      return on(
          codec<T>::topic, codec<T>::type,
          [handler = std::move(handler)](const message& m, transaction& tx) {
            const T decoded = decode<T>(m);
            if constexpr (with_message)
              handler(decoded, tx, m);
            else
              handler(decoded, tx);
          },
          options);
    } else {
      return *this;
    }
  }

  // A handler for raw messages of one type on one topic. An empty type: of every type that has no handler of
  // its own there.
  consumer& on(std::string_view topic, std::string_view type, raw_handler handler,
               const handler_options& options = {});

  template <class Handler>
    requires(!std::convertible_to<Handler, raw_handler>)
  consumer& on(std::string_view, std::string_view, Handler&&, const handler_options& = {}) {
    static_assert(std::is_convertible_v<Handler, raw_handler>,
                  "settle: a handler of consumer::on(topic, type, …) takes (const settle::message&, "
                  "settle::transaction&)");
    return *this;
  }

  // A handler for all events of this type that a batch holds in a row, (std::span<const T>, transaction&):
  // one statement can serve them all. If it throws, the batch is halved until the event that it minds is
  // alone.
  template <class T, class Handler>
  consumer& on_batch(Handler handler) {
    constexpr bool fits = std::invocable<const Handler&, std::span<const T>, transaction&>;
    detail::require_codec<T>();
    static_assert(
        fits,
        "settle: a handler of consumer::on_batch<T> takes (std::span<const T>, settle::transaction&), "
        "and is not mutable");
    if constexpr (fits && encodable<T>) {
      if (detail::is_empty(handler)) return on_batch(codec<T>::topic, codec<T>::type, raw_batch_handler());
      return on_batch(codec<T>::topic, codec<T>::type,
                      [handler = std::move(handler)](std::span<const message* const> all, transaction& tx) {
                        std::vector<T> decoded;
                        decoded.reserve(all.size());
                        for (const auto* m : all) decoded.push_back(decode<T>(*m));
                        handler(std::span<const T>(decoded), tx);
                      });
    } else {
      return *this;
    }
  }
  consumer& on_batch(std::string_view topic, std::string_view type, raw_batch_handler handler);
  template <class Handler>
    requires(!std::convertible_to<Handler, raw_batch_handler>)
  consumer& on_batch(std::string_view, std::string_view, Handler&&) {
    static_assert(std::is_convertible_v<Handler, raw_batch_handler>,
                  "settle: a handler of consumer::on_batch(topic, type, …) takes (std::span<const "
                  "settle::message* const>, settle::transaction&)");
    return *this;
  }

  // Fetches, applies one batch, acknowledges. False when nothing could be done now.
  bool run_once(std::stop_token cancel = {}) override;

  // What it has handlers for, by topic and type: for a test or a start-up check that compares it with what
  // the service may listen to.
  std::vector<subscribed> subscriptions() const;

  consumer_counts counts() const;

  // Whether messages of this consumer wait for another try, whichever of its processes has had them.
  bool has_parked() const;

  std::string_view name() const override;
  const environment& env() const override;
  wakeup& arrivals() override;
  duration idle_wait() const override;
  void leave() noexcept override;
  void abandon() noexcept override;

 private:
  template <class T>
  static T decode(const message& m) {
    try {
      return codec<T>::decode(m.payload);
    } catch (const std::exception& e) {
      throw error(errc::decode_failed, "event " + m.id + " of type " + m.type + ": " + e.what());
    }
  }

  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<engine> engine_;
};

}  // namespace settle

#pragma GCC visibility pop
