#include <algorithm>

#include "saga/commands.hpp"
#include "saga/engine.hpp"
#include "saga/mailbox.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration patience = std::chrono::milliseconds(500);

using sagas::journal_row;
using sagas::row_kind;
using sagas::saga_status;

// For an event, or for the reply to a command.
struct open_wait {
  int n = 0;
  sagas::event_key of;
  std::optional<timestamp> until = {};
  bool is_reply = false;
};

bool is_undone(const sagas::instance& of) {
  return sagas::has_ended(of.status) || of.status == saga_status::compensating;
}

open_wait reply_wait(const sagas::instance& of, const journal_row& row) {
  return {row.n,
          {std::string(sagas::reply_mail), sagas::call_key(of.row.id, of.rows.outside_name(row.n), false)},
          sagas::reply_deadline(of, row),
          true};
}

open_wait event_wait(const journal_row& row) {
  open_wait made{row.n, {row.name, row.input.value_or("")}};
  if (row.result) made.until = detail::read_stored<timestamp>(*row.result);
  return made;
}

bool is_open_event_wait(const sagas::instance& of, const journal_row& row) {
  return row.kind == row_kind::waiting && of.rows.answer_of(row.n) == nullptr;
}

// What is waited for by rows that are stored, or by those that are new.
std::vector<open_wait> open_waits(const sagas::instance& of, bool stored) {
  std::vector<open_wait> found;
  for (const auto& row : of.rows.rows()) {
    if ((static_cast<std::size_t>(row.n) <= of.rows_stored) != stored) continue;
    if (!is_undone(of) && is_open_event_wait(of, row)) found.push_back(event_wait(row));
    if (sagas::awaits_reply(of, row)) found.push_back(reply_wait(of, row));
  }
  return found;
}

// Waits that are stored and that nobody needs any more.
std::vector<open_wait> ended_waits(const sagas::instance& of) {
  std::vector<open_wait> found;
  for (std::size_t i = 0; i < of.rows_stored; ++i) {
    const auto& row = of.rows.rows()[i];
    if (is_undone(of) && is_open_event_wait(of, row)) found.push_back(event_wait(row));
    const bool command = sagas::is_command(of, row);
    if (!command) continue;
    const auto* answer = of.rows.answer_of(row.n);
    // An operator has answered, or nobody ever will.
    const bool by_hand = answer != nullptr && of.was_ordered && answer->n > static_cast<int>(of.rows_stored);
    if (by_hand || (answer == nullptr && sagas::has_ended(of.status))) found.push_back(reply_wait(of, row));
  }
  return found;
}

sagas::new_wait wait_of(const sagas::instance& of, const open_wait& one) {
  return {{of.row.no, one.n}, one.of};
}

void note_mail(sagas::instance& of, int n, const std::string& payload) {
  const auto row = of.rows.at(n);
  if (row.kind == row_kind::intent) return note_reply(of, n, payload);
  of.note({.kind = row_kind::event, .scope = row.scope, .name = row.name, .result = payload, .of = n});
}

}  // namespace

// What has been given to waits of these sagas since they were looked at, and waits whose time is over. Event
// or timeout: who ends the wait's row, under the lock of its key, has decided it.
void saga_host::engine::meet(transaction& tx, const round& of) const {
  std::map<std::int64_t, std::vector<open_wait>> waiting;
  std::vector<std::int64_t> numbers;
  for (const auto& [no, one] : of.sagas) {
    one->now = env().now();
    one->patient_until.reset();
    one->overdue_replies.clear();
    if (one->status != saga_status::running && one->status != saga_status::compensating) continue;
    auto waits = open_waits(*one, true);
    if (waits.empty()) continue;
    numbers.push_back(no);
    waiting.emplace(no, std::move(waits));
  }
  auto given = sagas::mailbox::read(tx, numbers);
  std::set<sagas::event_key> keys;
  std::vector<std::pair<instance*, const open_wait*>> overdue;
  for (const auto& [no, waits] : waiting) {
    auto& one = *of.sagas.at(no);
    for (const auto& wait : waits) {
      if (const auto found = given.find({no, wait.n}); found != given.end()) {
        note_mail(one, wait.n, found->second);
      } else if (wait.until && *wait.until <= one.now) {
        if (!may_time_out(*wait.until)) {
          one.patient_until = one.now + patience;
          continue;
        }
        overdue.emplace_back(&one, &wait);
        keys.insert(wait.of);
      }
    }
  }
  if (overdue.empty()) return;
  mail_.lock(tx, keys);
  for (const auto& [one, wait] : overdue) {
    if (!sagas::mailbox::end_wait(tx, {one->row.no, wait->n})) {
      const std::int64_t number[] = {one->row.no};
      note_mail(*one, wait->n, sagas::mailbox::read(tx, number).at({one->row.no, wait->n}));
    } else if (wait->is_reply) {
      one->overdue_replies.insert(wait->n);
    } else {
      const auto row = one->rows.at(wait->n);
      one->note({.kind = row_kind::timed_out, .scope = row.scope, .name = row.name, .of = row.n});
    }
  }
}

// What was published in time and is still in the broker is no timeout.
bool saga_host::engine::may_time_out(timestamp deadline) const {
  if (!events_ || events_->is_empty() || events_->caught_up_at() >= deadline) return true;
  events_->catch_up_to(deadline);
  return false;
}

// Waits that these sagas have begun, paired at once with what came before them; and waits that nobody needs
// any more, whose events others may get.
void saga_host::engine::part(transaction& tx, std::span<instance* const> ran) const {
  std::vector<sagas::new_wait> begun, over;
  std::set<sagas::event_key> keys;
  std::map<std::int64_t, instance*> by_number;
  for (auto* one : ran) {
    by_number[one->row.no] = one;
    for (const auto& wait : open_waits(*one, false)) begun.push_back(wait_of(*one, wait));
    for (const auto& wait : ended_waits(*one)) over.push_back(wait_of(*one, wait));
    // Who is held because nobody has answered may still be answered.
    for (const int n : one->overdue_replies)
      if (one->held_now && one->rows.answer_of(n) == nullptr)
        begun.push_back(wait_of(*one, reply_wait(*one, one->rows.at(n))));
  }
  for (const auto* all : {&begun, &over})
    for (const auto& one : *all) keys.insert(one.of);
  if (keys.empty()) return;
  mail_.lock(tx, keys);
  if (!over.empty()) mail_.give_back(tx, over);
  if (begun.empty()) return;
  std::set<std::int64_t> ours;
  for (const auto& one : begun) ours.insert(one.id.first);
  for (const auto& [wait, payload] : mail_.add(tx, begun, ours)) {
    auto& one = *by_number.at(wait.first);
    note_mail(one, wait.second, payload);
    one.wants_more = true;
  }
}

}  // namespace settle::inline v0
