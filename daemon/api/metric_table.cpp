#include "daemon/api/metric_table.hpp"

#include <array>

namespace settle::daemon {
namespace {

constexpr auto counter = metric_type::counter;
constexpr auto gauge = metric_type::gauge;
constexpr auto histogram = metric_type::histogram;

// Sorted by name.
constexpr std::array table{
    metric{"settle_broker_blocked", gauge, "",
           "1 while the broker takes no messages, or not of every topic: an alarm, no room. `/readyz` says "
           "why."},
    metric{"settle_broker_group_lag_messages", gauge, "group, topic",
           "Messages of a topic that a consumer group has not acknowledged. Of a RabbitMQ those that wait in "
           "the queues: what members have been sent is settle_rabbitmq_unacknowledged_messages of their own "
           "processes."},
    metric{"settle_broker_messages", gauge, "topic", "Messages stored in the embedded broker."},
    metric{"settle_broker_partition_lag_messages", gauge, "group, topic, partition",
           "Messages of a partition of a Kafka that a consumer group has not acknowledged."},
    metric{"settle_build_info", gauge, "version", "Always 1; the label says which version runs."},
    metric{"settle_claims_total", counter, "operation, outcome",
           "Calls about idempotency keys with leases: operation is claim, complete, renew or release; "
           "outcome is that of a claim (claimed, ask, completed, in_flight, mismatch, unknown), or done or "
           "lost; failed for a call that failed while others of its batch were done."},
    metric{"settle_consumer_applied_total", counter, "consumer", "Messages whose handler ran and committed."},
    metric{"settle_consumer_apply_delay_seconds", histogram, "consumer",
           "From when the broker stored a message to the commit of what its handler did. Without messages "
           "that had "
           "to wait after a failure, and those of brokers that do not say when they stored them."},
    metric{"settle_consumer_beyond_horizon_total", counter, "consumer",
           "Messages that were not run because their deduplication record may have expired."},
    metric{"settle_consumer_duplicates_total", counter, "consumer",
           "Messages that were skipped because they had been applied before."},
    metric{"settle_consumer_failures_total", counter, "consumer",
           "Messages that failed alone, each time; they are tried again or given up."},
    metric{"settle_consumer_handler_seconds", histogram, "consumer",
           "Time that one call of a handler took, for a message or for several at once; failed ones among "
           "them."},
    metric{"settle_consumer_handler_timeouts_total", counter, "consumer",
           "Handlers that took longer than handler_timeout; they are charged if they ever return."},
    metric{"settle_consumer_ignored_total", counter, "consumer",
           "Messages of a type that the consumer has no handler for."},
    metric{"settle_consumer_others_replays_total", counter, "consumer",
           "Replays of dead letters that were addressed to another consumer, and skipped."},
    metric{"settle_consumer_parked_total", counter, "consumer",
           "Messages that had to wait: after a failure, behind one of their key, or because a process died."},
    metric{"settle_consumer_pauses_total", counter, "consumer",
           "Outages: the consumer paused because its database, its broker or something that its handlers "
           "need was away."},
    metric{"settle_consumer_replays_total", counter, "consumer",
           "Dead letters that were replayed to this consumer, and ran."},
    metric{"settle_consumer_retries_total", counter, "consumer",
           "Parked messages that were tried again, each time."},
    metric{"settle_dead_letters_total", counter, "consumer, reason",
           "Messages that a consumer has given up; see settle dlq."},
    metric{"settle_guard_moves_total", counter, "machine, outcome",
           "Calls of a guard's move, by what they said; those of transactions that rolled back among them."},
    metric{"settle_http_client_connections_total", counter, "",
           "Connections that the HTTP client has opened."},
    metric{"settle_http_client_request_seconds", histogram, "outcome",
           "Time of requests of the HTTP client, from the call to its result."},
    metric{"settle_http_client_requests_total", counter, "outcome, trouble",
           "Requests of the HTTP client: answered, not_sent or unknown, and what has happened if there is no "
           "answer."},
    metric{"settle_http_closed_connections_total", counter, "",
           "HTTP connections that have ended; with settle_http_connections_total, how many are open."},
    metric{"settle_http_connections_total", counter, "", "HTTP connections that were accepted and served."},
    metric{"settle_http_refused_connections_total", counter, "",
           "Connections answered with 503 at once because http.connections_max were open."},
    metric{"settle_http_refused_requests_total", counter, "reason",
           "HTTP requests that were malformed, beyond a limit or too slow; the reason is the code of the "
           "answer."},
    metric{"settle_http_request_seconds", histogram, "route, method, status",
           "Time from the head of a request to its answer."},
    metric{"settle_http_requests_total", counter, "route, method, status",
           "Answered HTTP requests by class of status; paths that are not served are counted as other."},
    metric{"settle_kafka_gaps_total", counter, "group, topic",
           "Times that a group's place in a partition of a Kafka was outside the log, so that messages are "
           "missing."},
    metric{"settle_locks_asked_total", counter, "outcome",
           "Times that a lock was asked for: outcome is taken or held, by somebody else."},
    metric{"settle_locks_lost_total", counter, "why",
           "Locks that their owners found lost: why is taken or expired."},
    metric{"settle_once_total", counter, "service, outcome",
           "Idempotent requests: outcome is executed, replayed, in_flight or mismatch."},
    metric{"settle_outbox_delayed_events", gauge, "", "Committed events that wait for their deliver_at."},
    metric{"settle_outbox_failed_events", gauge, "",
           "Events that were given up because the broker rejects them, and wait for an operator."},
    metric{"settle_outbox_failed_total", counter, "topic",
           "Events that were given up after relay.attempts_max rejections, and wait for an operator."},
    metric{"settle_outbox_headers_changed_total", counter, "topic",
           "Events whose rows were written by hand, with headers that had to be renamed or left out."},
    metric{"settle_outbox_oldest_pending_age_seconds", gauge, "",
           "Age of the oldest committed event that the broker has not confirmed; 0 if there is none."},
    metric{"settle_outbox_pending_events", gauge, "", "Committed events that the broker has not confirmed."},
    metric{"settle_publish_skipped_total", counter, "topic",
           "Events that were not published because their natural key had been published before."},
    metric{"settle_quantity_takes_total", counter, "resource, outcome",
           "Calls that took a quantity, by what they said; those of transactions that rolled back among "
           "them."},
    metric{"settle_rabbitmq_discarded_total", counter, "topic",
           "Messages of a topic without groups that were discarded, as the broker's options say."},
    metric{"settle_rabbitmq_unacknowledged_messages", gauge, "group",
           "Messages that members of a group in this process have taken and not acknowledged."},
    metric{"settle_relay_failures_total", counter, "fault",
           "Batches that were not fully confirmed: fault is destination, message or topic."},
    metric{"settle_relay_ownership_lost_total", counter, "",
           "Times that a relay found its part taken over by another."},
    metric{"settle_relay_publish_delay_seconds", histogram, "",
           "From the publish call of an event, or its deliver_at, to the broker's confirmation; when its "
           "transaction "
           "committed is not recorded. Without events that were held back, and without adopted tables."},
    metric{"settle_relay_published_total", counter, "", "Events that the broker confirmed to a relay here."},
    metric{"settle_relays_alive", gauge, "", "Relays, in any process, that share this outbox."},
    metric{"settle_replays_failed_total", counter, "consumer",
           "Dead letters that were replayed and have failed again."},
    metric{"settle_reservations_expired_total", counter, "resource",
           "Reservations that nobody confirmed in time, and that were given back here."},
    metric{"settle_reservations_total", counter, "resource, outcome",
           "Calls that reserved a quantity, by what they said; those of transactions that rolled back among "
           "them."},
    metric{"settle_saga_events_unclaimed_total", counter, "host",
           "Events that were removed because no saga has waited for them in mailbox_keep."},
    metric{"settle_saga_participations_total", counter, "outcome",
           "Calls of participate(), by what they said; those of transactions that rolled back among them."},
    metric{"settle_saga_replies_unexpected_total", counter, "host",
           "Replies to commands that nobody waited for (any more)."},
    metric{"settle_saga_slow_bodies_total", counter, "host, type",
           "Times that a body has held its thread for over 50 ms, outside of steps."},
    metric{"settle_saga_step_outcomes_total", counter, "host, type, step, outcome",
           "What became of steps: started (calls, commands, children), done, refused, retried, unknown, "
           "undone, held."},
    metric{"settle_saga_step_seconds", histogram, "host, type, step, outcome",
           "How long steps took: local ones their handler, others from start to end."},
    metric{"settle_saga_steps_total", counter, "host, type", "Steps of sagas that were done."},
    metric{"settle_saga_ticks_failed_total", counter, "host",
           "Transactions with several sagas that were done again with more care because a step failed."},
    metric{"settle_saga_undos_total", counter, "host, type", "Steps of sagas that were undone."},
    metric{"settle_sagas", gauge, "host, type, status",
           "Sagas that have not ended, in the service's database: RUNNING, COMPENSATING or HELD."},
    metric{"settle_sagas_ended_total", counter, "host, type, status",
           "Sagas that have ended: COMPLETED, FAILED or COMPENSATED."},
    metric{"settle_sagas_held", gauge, "",
           "Sagas that wait for a person, in the service's database; see settle saga list --held."},
    metric{"settle_sagas_stranded", gauge, "",
           "Sagas that have not ended, and no process is running that knows their type and version."},
    metric{"settle_sagas_without_process", gauge, "host, type, version",
           "Sagas that are due and that no running process knows; looked for every minute."},
    metric{"settle_service_failures_total", counter, "work",
           "Failed rounds of a background service; it goes on after a pause."},
    metric{"settle_start_time_seconds", gauge, "", "When this process started, in seconds since 1970."},
    metric{"settle_store_up", gauge, "store", "1 if the store answered this scrape, 0 if not."},
    metric{"settle_swept_total", counter, "what",
           "Rows that settled has removed because their time was over: what is requests or webhooks."},
    metric{"settle_table_relay_failed_total", counter, "table",
           "Rows of an adopted table that were set to FAILED because the broker rejected them too often."},
    metric{"settle_table_relay_failures_total", counter, "table, fault",
           "Rejected messages of an adopted table (fault is message) and batches that its destination did "
           "not take "
           "(destination)."},
    metric{"settle_table_relay_ownership_lost_total", counter, "table",
           "Times that a relay of an adopted table found its part taken over by another."},
    metric{"settle_table_relay_published_total", counter, "table",
           "Rows of an adopted table that the broker confirmed to a relay here."},
    metric{
        "settle_webhook_events_total", counter, "source, outcome",
        "Journaled webhooks that a worker here has brought to an end, or parked: outcome is applied, parked, "
        "ignored, stale or failed."},
    metric{"settle_webhook_failures_total", counter, "source",
           "Journaled webhooks whose handler failed, each time; they are tried again or given up."},
    metric{"settle_webhook_pauses_total", counter, "source",
           "Times that a source of journaled webhooks was paused because something that it needs was away."},
    metric{"settle_webhook_times_unread_total", counter, "source",
           "Deliveries with a provider's time that cannot be read: they are taken as if they had none."},
    metric{"settle_webhooks_total", counter, "source, outcome",
           "Webhooks that were answered here, by outcome; see the webhooks guide."},
};

}  // namespace

std::string_view to_string(metric_type type) {
  switch (type) {
    case counter:
      return "counter";
    case gauge:
      return "gauge";
    case histogram:
      return "histogram";
  }
  return "untyped";
}

std::span<const metric> all_metrics() { return table; }

}  // namespace settle::daemon
