// Dead letters: messages that a consumer has given up, kept with everything that is known about them.
//
// They are rows of the consumer's own database (dlq_events), written in the transaction that gives up,
// together with an event on "<topic>.dlq" that tells everybody else. Once the cause is mended, they are
// replayed:
//
//   settle::replay(*db, {.consumer = "warehouse"});
//
// or, if they are never to run, discarded, with a reason that stays in the row:
//
//   settle::discard(*db, {.ids = {7}}, "the order was cancelled by hand");
//
// A replay goes through the original topic, keeps the message's identity and is addressed: only the consumer
// that failed runs it, once, whatever has become of the deduplication records meanwhile. Every other one
// skips it.
//
// What others have given up, in a queue that their broker dead-letters into, is imported by a consumer:
//
//   settle::consumer import(*db, *broker, {.name = "import", .topics = {"payments"}});
//   import.on("payments", "", settle::import_as_dead_letter("warehouse"));
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/failure.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct failed_attempt {
  timestamp at{};
  failure_class why = failure_class::poison;
  std::string error;
};

// Why it was given up.
enum class dead_letter_reason {
  permanent,             // the failure was of a kind that no retry mends
  exhausted,             // it has failed attempts_max times
  too_old,               // still transient after transient_max_age
  crashed_process,       // three processes died over it
  beyond_dedup_horizon,  // it may have run long ago: the record of that may have expired
  imported,              // somebody else has given it up
};
std::string_view to_string(dead_letter_reason of);
std::optional<dead_letter_reason> dead_letter_reason_from(std::string_view text);

enum class dead_letter_status { fresh, replaying, replayed, discard_requested, discarded };
std::string_view to_string(dead_letter_status of);  // NEW, REPLAYING, REPLAYED, DISCARD_REQUESTED, DISCARDED
std::optional<dead_letter_status> dead_letter_status_from(std::string_view text);

struct dead_letter {
  std::int64_t id = 0;  // within its database
  std::string consumer;
  std::string consumer_version;
  dead_letter_status status = dead_letter_status::fresh;
  dead_letter_reason reason = dead_letter_reason::permanent;
  std::string error;                    // the last one
  std::int64_t attempts = 0;            // how often it has failed
  std::vector<failed_attempt> history;  // the last 100 of them, oldest first
  timestamp failed_at{};                // when it was given up
  bool blocks_key = false;              // later messages of its key wait until it is replayed or discarded
  std::int64_t replays = 0;             // how often it was asked for again
  std::optional<timestamp> replayed_at = {};  // when that was last, or when it ran at last
  message what;                               // as it was delivered
  std::string log;                            // the partition it came from
  std::string position;                       // and its place there, as the broker's users know it
  std::optional<timestamp> discarded_at = {};
  std::string discard_reason = {};  // in the words of whoever discarded it
};

// Which ones. Whatever is empty matches everything.
struct dead_letter_filter {
  std::vector<std::int64_t> ids = {};
  std::string event_id = {};  // the message's own id
  std::string consumer = {};
  std::string topic = {};
  std::string type = {};
  std::string key = {};
  std::optional<dead_letter_reason> reason = std::nullopt;
  std::optional<dead_letter_status> status = std::nullopt;
  std::optional<timestamp> failed_from = std::nullopt;   // inclusive
  std::optional<timestamp> failed_until = std::nullopt;  // exclusive
};

// Oldest first, at most so many, those with an id above `after`: payloads and histories among them.
std::vector<dead_letter> dead_letters(database& db, const dead_letter_filter& which = {},
                                      std::size_t at_most = 100, std::int64_t after = 0);

struct dead_letter_group {
  std::string consumer, topic, type;
  dead_letter_reason reason = dead_letter_reason::permanent;
  dead_letter_status status = dead_letter_status::fresh;
  std::int64_t count = 0;
  timestamp oldest{}, newest{};
};
// How many there are, by consumer, topic, type, reason and status; the largest group first.
std::vector<dead_letter_group> dead_letter_groups(database& db);

struct replay_options {
  // Sizes of the first batches; each later one is as large as the last. A batch is sent when every letter of
  // the one before has run or failed, so a mistake costs few. Each 1 to 1,000.
  std::vector<std::int64_t> batches = {1, 2, 5, 20, 100};
  // At most so many per second; batches are made smaller for it. 0: no limit.
  double rate_max = 0;
  // Stop when more than this part of a batch has failed again.
  double failures_max = 0.1;
  // How long to wait for a batch to be run. Its letters stay REPLAYING afterwards, and run when their
  // consumer comes back.
  duration wait_max = std::chrono::seconds(60);
  // How often to look whether a batch is done.
  duration poll = std::chrono::milliseconds(50);
};

struct replay_progress {
  std::int64_t matching = 0;  // letters that were found at the start
  std::int64_t sent = 0;
  std::int64_t ran = 0;
  std::int64_t failed_again = 0;
  std::int64_t waiting = 0;  // sent, and neither run nor failed yet
};

enum class replay_end { done, too_many_failures, timed_out, stopped };

struct replay_outcome {
  replay_end end = replay_end::done;
  replay_progress counts;
};

// Replays the letters that are NEW and match, but of those that are beyond_dedup_horizon, which may have been
// applied long ago, only what the filter names by its id or by that reason; with status REPLAYING in the
// filter those that were asked for at least wait_max ago and that nobody has run. Of one that is asked for
// twice only the last copy counts. Those that come while it runs are left for the next time. `progress` is
// called after every look, also while it waits for its rate. Errors: invalid_argument for another status, and
// for options out of their bounds; those of the store. Letters that were sent stay REPLAYING then. `stop`
// ends it between two looks.
replay_outcome replay(database& db, const dead_letter_filter& which, const replay_options& options = {},
                      std::stop_token stop = {},
                      const std::function<void(const replay_progress&)>& progress = {});

// A handler that makes each message a dead letter of this consumer, which gets it when it is replayed. What
// others have noted about its failures becomes the letter's history: RabbitMQ's x-death, and the headers of
// MassTransit, NServiceBus, Watermill and Kafka Connect.
std::function<void(const message&, transaction&)> import_as_dead_letter(std::string consumer);

constexpr std::size_t discard_reason_bytes_max = 1000;

struct discard_outcome {
  std::int64_t matching = 0;   // letters that were found at the start
  std::int64_t discarded = 0;  // the others were replayed, run or discarded by somebody else meanwhile
};

// Discards the letters that are NEW and match; with status REPLAYING in the filter those that were sent and
// that nobody has run: a copy that still comes does nothing then. Rows and reason stay, as DISCARDED. If
// later messages of a letter's key wait for it, they are due from the same transaction on. In transactions of
// up to 100 letters, oldest first; `stop` ends it between two of them, and `progress` is called after each.
// May be repeated. Errors: invalid_argument for another status, invalid_name for a reason that is empty,
// longer than discard_reason_bytes_max or no text; those of the store.
discard_outcome discard(database& db, const dead_letter_filter& which, std::string_view reason,
                        std::stop_token stop = {},
                        const std::function<void(const discard_outcome&)>& progress = {});

}  // namespace settle::inline v0

#pragma GCC visibility pop
