// The bug zoo: known bugs of this field, kept as switches. They exist only in the test library
// settle_zoo; in the real one `zoo::has` is a constant false and the branch is gone. A test proves that
// our checks find each of them.
#pragma once

namespace settle::zoo {

enum class bug {
  none,
  ack_before_commit,                // a crash between the two loses the message
  check_then_insert,                // two deliveries both see "not processed yet"
  publish_after_commit,             // a crash between the two loses the event
  claim_kept_after_failed_handler,  // the claims commit without the effects: the retry is taken for a
                                    // duplicate
  cursor_on_reusable_rowid,         // a position that a deleted row had comes again, and counts as published
  publish_before_durable,           // what a power loss or a crash undoes has been published
  ack_lost_twice,                   // a duplicate uses up its dedup record: the second redelivery runs again
  retention_by_wrong_clock,         // records go by age alone, while a copy can still come: it runs again
  order_by_xid,     // transaction ids are drawn before the key's lock: they say nothing about order
  moving_snapshot,  // a window's pages show ever more: what appears behind the last page is skipped
  serial_cursor,    // the highest number seen: what commits late with a lower one is skipped
  cursor_kept_across_failover,     // transaction ids of another history: new events look published
  claim_outside_rolled_back_part,  // a failure is written down without its message: claimed, and never tried
                                   // again
  failed_part_kept,  // what a handler wrote before it failed commits with its neighbours: the retry repeats
                     // it
  charge_for_an_outage,       // what fails for everybody is counted against each message
  replay_to_all_groups,       // whoever gets a replay runs it, if its own record has expired
  replay_address_believed,    // whoever writes the header of a replay is believed: every consumer skips its
                              // event
  expiry_before_replay,       // records and horizons stop the replay that was asked for
  overtaking_a_parked_key,    // later messages of a key run while an earlier one waits
  charge_kept_when_left_out,  // a failed message leaves its batch, and a later one of its key is parked first
  lease_frees_the_key,        // an expired claim is taken for one that was not executed: it runs twice
  epoch_by_the_clock,  // read before a wait, or from one that is behind: the next holder has a lower one
  fence_by_clock,      // a lock that was valid when somebody looked: its paused owner writes
  key_checked_then_inserted,       // two requests both see "no record", and both commit what they did
  key_recorded_after_commit,       // a crash between effects and record: the repetition runs again
  key_joined_as_text,              // "a:b" with key "c" is answered what "a" got for its key "b:c"
  state_checked_then_changed,      // two callers see the same state, and both move the row
  quantity_read_then_written,      // two buyers see the same rest, and both take it
  webhook_checked_then_noted,      // two deliveries both see "not applied yet"
  webhook_answered_before_commit,  // the provider is told 200, and a failure afterwards loses the event
  request_sent_again,              // a kept connection ends, and what may have been done is sent again
  exchange_taken_for_whole,        // one that was deleted and made again has lost a group's bindings
  sent_taken_for_confirmed,        // a line that breaks before the broker's confirmation loses the event
  tag_of_an_old_channel,           // numbers start over with a channel: another message is acknowledged
  requeue_overtakes,               // what is put back alone comes behind what was already sent ahead
  early_event_race,                // locked and read in one statement: an event and its wait miss each other
  undo_skips_the_unknown,          // a step without an answer is not undone, and it was done
  frames_kept_after_failure,       // a body has seen the result of a step that was rolled back
  key_of_the_owner,                // who takes over asks with another key: the other side does it twice
  deadline_recomputed,             // "in five days" is counted anew whenever the body is replayed
  wake_up_overwritten,             // a tick writes the next time over an event that came meanwhile
  doubt_read_without_fence,        // a journal is read while the commit that is in doubt may still arrive
  offset_before_effects,           // a crash between the two loses what was handed out
  commit_of_a_revoked_partition,   // the place of whoever owns it now moves over what nobody has done
  auto_commit_left_on,             // a client that commits by itself what it has handed out
  reset_to_latest,                 // a group without a place skips everything that it has not seen
};

#ifdef SETTLE_ZOO
inline bug present = bug::none;
inline bool has(bug which) { return present == which; }
#else
constexpr bool has(bug) { return false; }
#endif

}  // namespace settle::zoo
