#include <algorithm>

#include "saga/engine.hpp"
#include "saga/mailbox.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration patience = std::chrono::milliseconds(500);

using sagas::journal_row;
using sagas::row_kind;

// Rows that wait for an event, those that are stored or those that are new.
std::vector<const journal_row*> open_waits(const sagas::instance& of, bool stored) {
  std::vector<const journal_row*> found;
  for (const auto& row : of.rows.rows())
    if (row.kind == row_kind::waiting && of.rows.answer_of(row.n) == nullptr &&
        (static_cast<std::size_t>(row.n) <= of.rows_stored) == stored)
      found.push_back(&row);
  return found;
}

sagas::new_wait wait_of(const sagas::instance& of, const journal_row& row) {
  return {{of.row.no, row.n}, {row.name, row.input.value_or("")}};
}

void note_event(sagas::instance& of, int n, const std::string& payload) {
  const auto row = of.rows.at(n);
  of.note({.kind = row_kind::event, .scope = row.scope, .name = row.name, .result = payload, .of = n});
}

}  // namespace

// What has been given to waits of these sagas since they were looked at, and waits whose time is over. Event
// or timeout: who ends the wait's row, under the lock of its key, has decided it.
void saga_host::engine::meet(transaction& tx, const round& of) const {
  std::vector<std::int64_t> waiting;
  for (const auto& [no, one] : of.sagas) {
    one->now = env().now();
    one->patient_until.reset();
    if (one->status == sagas::saga_status::running && !open_waits(*one, true).empty()) waiting.push_back(no);
  }
  auto given = sagas::mailbox::read(tx, waiting);
  std::set<sagas::event_key> keys;
  std::vector<std::pair<instance*, int>> overdue;
  for (const auto no : waiting) {
    auto& one = *of.sagas.at(no);
    for (const auto* row : open_waits(one, true)) {
      const int n = row->n;
      if (const auto found = given.find({no, n}); found != given.end()) {
        note_event(one, n, found->second);
      } else if (row->result && detail::read_stored<timestamp>(*row->result) <= one.now) {
        if (!may_time_out(detail::read_stored<timestamp>(*row->result))) {
          one.patient_until = one.now + patience;
          continue;
        }
        overdue.emplace_back(&one, n);
        keys.insert(wait_of(one, *row).of);
      }
    }
  }
  if (overdue.empty()) return;
  mail_.lock(tx, keys);
  for (auto& [one, n] : overdue) {
    const auto row = one->rows.at(n);
    if (sagas::mailbox::end_wait(tx, {one->row.no, n})) {
      one->note({.kind = row_kind::timed_out, .scope = row.scope, .name = row.name, .of = n});
      continue;
    }
    const std::int64_t number[] = {one->row.no};
    note_event(*one, n, sagas::mailbox::read(tx, number).at({one->row.no, n}));
  }
}

// What was published in time and is still in the broker is no timeout.
bool saga_host::engine::may_time_out(timestamp deadline) const {
  return !events_ || events_->is_empty() || events_->empty_at() >= deadline;
}

// Waits that these sagas have begun, paired at once with what came before them; and waits that nobody needs
// any more, whose events others may get.
void saga_host::engine::part(transaction& tx, std::span<instance* const> ran) const {
  std::vector<sagas::new_wait> begun, over;
  std::set<sagas::event_key> keys;
  std::map<std::int64_t, instance*> by_number;
  for (auto* one : ran) {
    const bool undone = sagas::has_ended(one->status) || one->status == sagas::saga_status::compensating;
    by_number[one->row.no] = one;
    for (const auto* row : open_waits(*one, undone)) {
      (undone ? over : begun).push_back(wait_of(*one, *row));
      keys.insert(wait_of(*one, *row).of);
    }
  }
  if (keys.empty()) return;
  mail_.lock(tx, keys);
  if (!over.empty()) mail_.give_back(tx, over);
  if (begun.empty()) return;
  std::set<std::int64_t> ours;
  for (const auto& one : begun) ours.insert(one.id.first);
  for (const auto& [wait, payload] : mail_.add(tx, begun, ours)) {
    auto& one = *by_number.at(wait.first);
    note_event(one, wait.second, payload);
    one.wants_more = true;
  }
}

}  // namespace settle::inline v0
