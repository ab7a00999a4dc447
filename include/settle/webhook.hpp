// The webhook inbox: what a provider tells you is verified, written down and applied exactly once, however
// often and in whatever order it is sent.
//
//   settle::webhook::inbox payments(settle::webhook::stripe("stripe", {secret}));
//
//   // In the HTTP handler: all in one transaction, or nothing of it.
//   const auto answer = payments.apply(*db, {headers, raw_body},
//       [](const settle::webhook::received& event, settle::transaction& tx) {
//         tx.execute("insert into payments (id, body) values ($1, $2)", {event.id, event.body});
//         settle::publish(tx, payment_captured{event.key});
//         return settle::webhook::answer::done;
//       });
//   return answer.status;
//
// Or journal it now and apply it later, which answers the provider sooner and retries by itself:
//
//   const auto answer = payments.receive(*db, {headers, raw_body});   // 200: it is durably journaled
//   …
//   settle::webhook::worker worker(*db);
//   worker.on("stripe", "charge.succeeded", handler);                 // the same handler
//   worker.on("stripe", "", settle::webhook::forward_to("stripe"));   // or: everything else as an event
//   settle::background loop(worker);
//
// Guarantees: one effect in the database per (source, event id), with any number of deliveries, processes and
// crashes; 200 only after the commit; a forged one leaves no trace but a counter and a log line. Events of
// one key are applied one at a time. One that comes too early (`not_yet`) waits until another one of its key
// was applied, or some time has passed; one that comes too late can be ignored by the provider's time.
// Effects outside the transaction (a mail, a call) may repeat.
//
// Threads: an inbox may be used by any number at once; a worker by one, and there may be several workers in
// any processes. Errors: what a provider or an outage does is a value with an HTTP status; invalid_argument
// and invalid_name for a source that cannot work.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "settle/database.hpp"
#include "settle/event.hpp"
#include "settle/ids.hpp"
#include "settle/service.hpp"
#include "settle/webhook_signature.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::webhook {

// Where something is found in a webhook: in a header, in a member of the JSON body ("id", "data.object.id";
// texts and integers), or by a function of yours, which returns an empty text if it is not there.
struct in_header {
  std::string name;
};
struct in_json {
  std::string path;
};
using place = std::variant<std::monostate, in_header, in_json, std::function<std::string(const request&)>>;

// One provider, or one endpoint of it.
struct source {
  // In the journal, in logs and in metrics; 1–100 bytes.
  std::string name;
  signing signature;
  // What makes an event the same event, however often it is sent: "webhook-id", Stripe's "id", a gateway's
  // transaction id, a transaction hash. 1–255 bytes of UTF-8. A webhook without one is answered 400.
  place event_id;
  // Chooses the handler. Not there: an empty type.
  place type = {};
  // What the event is about: an order, a payment. Events of one key are applied one at a time. Not there:
  // each is by itself, and is never early or stale. At most 1,024 bytes.
  place key = {};
  // When it happened, by the provider's clock: seconds since 1970, milliseconds since 1970 in 13 digits, or
  // RFC 3339 with any offset. Not the time of the delivery, which changes with every attempt. One that cannot
  // be read is logged and counted, and the event has none.
  place time = {};
  // Ignore an event if one of its key with a later provider's time was applied before. For providers whose
  // events carry the whole state; not for those of which each counts.
  bool ignore_stale = false;
  // Only what is signed may decide whether something is new. An id, key, type or time in a header is refused,
  // unless the scheme signs that header (webhook-id) or this says that the way to here is trusted: whoever
  // can send you a copy of a body could give it another id.
  bool trust_unsigned_headers = false;
  // Headers to keep in the journal.
  std::vector<std::string> keep_headers = {"content-type"};
  // Larger ones are answered 413.
  std::size_t body_bytes_max = event_limits::payload_bytes_max_default;
};

// The usual ones; change what you like. Stripe: id, type, created and, as key, data.object.id.
source stripe(std::string name, std::vector<std::string> secrets);
// Standard Webhooks: webhook-id; type, timestamp and, as key, data.id of the body.
source standard(std::string name, std::vector<std::string> keys);

// An event as handlers see it.
struct received {
  std::string source;
  std::string id;
  std::string type;
  std::string key;
  std::optional<timestamp> time = std::nullopt;  // the provider's
  timestamp received_at{};
  attributes headers;         // those that were kept; names in lower case
  std::string body;           // the bytes as they came
  std::int64_t attempts = 0;  // how often a worker has failed with it
};

// What a handler says.
enum class answer {
  done,     // applied: its writes commit
  not_yet,  // something has to come first: its writes are undone, and the event waits for its key
  ignore,   // of no interest: its writes are undone, and the event is over
};
// It writes in the transaction that it is given. Where that is Settle's own, it cannot begin another one on
// the same database (transaction_control): that would commit what a rollback of this one does not take back.
using handler = std::function<answer(const received&, transaction&)>;

enum class outcome {
  journaled,    // 200: a worker will apply it
  applied,      // 200
  parked,       // 200: journaled; it came too early, and a worker will apply it
  ignored,      // 200
  stale,        // 200: a later one of its key was applied before
  too_late,     // 200: so old that its record may have expired; journaled, and not run
  duplicate,    // 200: journaled or applied before
  no_event_id,  // 400: rightly signed, but it cannot be told from others, or its key cannot be stored
  refused,      // 401: see decision::refused
  too_large,    // 413
  failed,       // 500: the handler threw; nothing was written, and the provider will send it again
  unavailable,  // 503: the database is away or busy; nothing was decided, and the provider will send it again
};
std::string_view to_string(outcome of);

struct decision {
  outcome what = outcome::unavailable;
  int status = 503;  // to answer with, and an empty body
  std::optional<refusal> refused = std::nullopt;
  std::string event_id = {};
  std::string error = {};  // for your log, not for the sender
};

class inbox {
 public:
  explicit inbox(source of);
  ~inbox();
  inbox(inbox&&) noexcept;

  // Verifies and journals; a worker applies. 200 after the commit.
  decision receive(database& db, const request& what) const;

  // Verifies, journals and applies in one transaction of its own. A worker is needed only for those that come
  // too early, and for retention. Exceptions of the handler end as 500, those of the database as 503.
  decision apply(database& db, const request& what, const handler& with) const;

  // The same in your transaction: its commit is yours, and the answer to the provider must wait for it. On
  // `duplicate` nothing was written. Throws what the handler throws, and errors of the database; the event is
  // then as if it had not come, and the answer 503.
  decision apply(transaction& tx, const request& what, const handler& with) const;

  template <class In, class Handler>
    requires((std::derived_from<In, database> || std::derived_from<In, transaction>) &&
             !std::convertible_to<Handler, handler>)
  decision apply(In&, const request&, Handler&&) const {
    static_assert(std::is_convertible_v<Handler, handler>,
                  "settle: a handler of webhooks takes (const settle::webhook::received&, "
                  "settle::transaction&) and returns a settle::webhook::answer");
    return {};
  }

  const source& of() const;

 private:
  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<const engine> engine_;
};

struct worker_options {
  // Events per run_once(), each in a transaction of its own.
  std::size_t batch_max = 64;
  // A failed event (settle/failure.hpp) is tried again after n² times retry_wait, at most retry_wait_max. It
  // is FAILED, logged and counted, at once if it will never work, after attempts_max if nobody knows, and
  // after transient_max_age if it should have passed. Others of its key do not wait for it. One whose handler
  // has ended its process three or four times is FAILED as well.
  duration retry_wait = std::chrono::seconds(1);
  duration retry_wait_max = std::chrono::minutes(5);
  std::int64_t attempts_max = 10;
  duration transient_max_age = std::chrono::hours(24);
  // Something that a handler needs is away (failure_class::outage): its source pauses, and no other; after
  // the n-th time in a row n² times this, at most outage_wait_max. Then one event is tried. No event is
  // charged, unless it is the only one of its source that does not get through.
  duration outage_wait = std::chrono::seconds(1);
  duration outage_wait_max = std::chrono::seconds(30);
  // An early one is tried again when one of its key was applied, and in any case after park_wait, doubled
  // each time up to park_wait_max; after park_max_age it is FAILED.
  duration park_wait = std::chrono::seconds(1);
  duration park_wait_max = std::chrono::minutes(5);
  duration park_max_age = std::chrono::hours(72);
  // How long events that are over stay in the journal, and with them the knowledge that they are. One that is
  // sent again after that is told by its provider's time, if it has one, and not run (`too_late`). FAILED
  // ones, and those that wait, stay. At least an hour, and better as long as your provider goes on trying: an
  // event of which it first tells you later than that is taken for a copy. Zero: this worker removes nothing;
  // somebody else calls expire().
  duration keep = std::chrono::days(30);
  // How often to look without a wake-up.
  duration idle_poll = std::chrono::milliseconds(500);
};

struct worker_counts {
  std::int64_t applied = 0;
  std::int64_t parked = 0;   // times that one came too early
  std::int64_t ignored = 0;  // by their handler, or for want of one
  std::int64_t stale = 0;
  std::int64_t failures = 0;  // attempts
  std::int64_t pauses = 0;    // outages of a source
  std::int64_t given_up = 0;  // events that are FAILED
  std::int64_t expired = 0;   // removed from the journal
};

class worker final : public service {
 public:
  explicit worker(database& db, const worker_options& options = {});
  ~worker() override;

  // Of this source and type. An empty type: of every type that has no handler of its own; without one, such
  // events are ignored. Events of a source without any handler here wait for a worker that has one.
  worker& on(std::string_view source, std::string_view type, handler with);

  bool run_once(std::stop_token cancel = {}) override;

  worker_counts counts() const;

  std::string_view name() const override { return "webhooks"; }
  const environment& env() const override;
  wakeup& arrivals() override;
  duration idle_wait() const override;

 private:
  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<engine> engine_;
};

// A handler that publishes the webhook as an event: body as payload, its type (or "webhook") as type, its key
// as key, with the headers webhooksource and webhookid. The event's id follows from source and webhook id, so
// it is the same whoever publishes it.
handler forward_to(std::string topic);
event_id forwarded_id(std::string_view source, std::string_view webhook_id);

// What became of one event: RECEIVED, PARKED, APPLIED, IGNORED, STALE, TOO_LATE or FAILED.
struct journal_entry {
  std::string status;
  std::int64_t attempts = 0;
  std::string last_error;
  received what;
};
std::optional<journal_entry> find(database& db, std::string_view source, std::string_view event_id);

// Events of the journal without their bodies, in the order in which they came, for operators.
struct journal_filter {
  std::string source = {};  // empty: all
  std::string status = {};  // empty: those that are not over, RECEIVED, PARKED and FAILED; "ANY": all
};
struct journal_line {
  std::int64_t number = 0;  // of its row: grows
  std::string source, id, type, key, status, last_error;
  std::int64_t attempts = 0;
  timestamp received_at = {};
  std::optional<timestamp> next_at = std::nullopt;  // of those that wait for a worker
};
std::vector<journal_line> list(database& db, const journal_filter& which, std::size_t at_most = 100,
                               std::int64_t after = 0);

// Lets workers try a FAILED event anew, or run one that was TOO_LATE. False: there is no such.
bool retry(database& db, std::string_view source, std::string_view event_id);

// What workers do now and then, for services that have none: removes at most so many events that have been
// over for `keep`, at least an hour. How many it has removed.
std::int64_t expire(database& db, duration keep = std::chrono::days(30), std::int64_t events_max = 1000);

}  // namespace settle::inline v0::webhook

#pragma GCC visibility pop
