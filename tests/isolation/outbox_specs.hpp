// The schedules in which outboxes on PostgreSQL lose, double or reorder events. Each function says who does
// what; the runner tries all orders.
#pragma once

#include "isolation/outbox_world.hpp"

namespace settle::isolation {

// Writers against one relay.
void late_commit_with_a_lower_number(outbox_world& in);
void commit_while_the_relay_is_at_work(outbox_world& in);
void paging_while_commits_arrive(outbox_world& in);
void one_key_in_lock_order(outbox_world& in);
void savepoints(outbox_world& in);
void prepared_transactions(outbox_world& in);
void relay_that_also_writes(outbox_world& in);

// Relays, tickers and the ring against each other.
void ring_against_a_slow_writer(outbox_world& in);
void ring_turned_with_an_old_snapshot(outbox_world& in);
void replaced_relay(outbox_world& in);
void two_tickers(outbox_world& in);
void rebase_against_writers(outbox_world& in);

}  // namespace settle::isolation
