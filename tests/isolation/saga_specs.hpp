// Specs of sagas on PostgreSQL: which sessions take which steps, and what must be true in every order.
#pragma once

#include "isolation/runner.hpp"

namespace settle::isolation {

// An event is brought while the saga begins to wait for it.
exploration early_event_and_wait();
// An event is brought while the tick finds that its time is over.
exploration event_and_timeout();
// An event is brought while another branch's tick writes when the saga is due next.
exploration event_and_other_branch();
// A step fails in the database and takes its tick down, while an event is brought.
exploration event_and_failed_tick();
// A host is replaced in the middle of a tick, and does not know it.
exploration two_owners();
// A host is replaced while its request is out.
exploration take_over_of_a_call();
// An action and a copy of it reach the participant while its undo, under a higher epoch, does; in SQL.
exploration undo_and_late_action();

}  // namespace settle::isolation
