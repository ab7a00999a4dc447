#include "inspect/saga_timeline.hpp"

#include <array>

#include "settle/storable.hpp"

namespace settle::inspect {
namespace {

using sagas::journal;
using sagas::journal_row;
using sagas::row_kind;

constexpr std::string_view hand = "by hand ";

// What one of these is written as is for this program or a newer one to know.
std::optional<timestamp> time_in(const std::optional<std::string>& text) try {
  if (!text) return std::nullopt;
  return detail::read_stored<timestamp>(*text);
} catch (const error&) {
  return std::nullopt;
}

saga_act act_of(const journal_row& opening) {
  switch (opening.kind) {
    case row_kind::intent:
      return saga_act::call;
    case row_kind::timer:
      return saga_act::sleep;
    case row_kind::waiting:
      return saga_act::wait;
    case row_kind::child:
      return saga_act::child;
    case row_kind::version:
      return saga_act::version;
    default:
      return saga_act::step;
  }
}

saga_end end_of(row_kind answer) {
  switch (answer) {
    case row_kind::refused:
      return saga_end::refused;
    case row_kind::timed_out:
      return saga_end::timed_out;
    default:
      return saga_end::done;
  }
}

void take_answer(saga_entry& entry, const journal_row& answer) {
  entry.end = end_of(answer.kind);
  if (entry.what == saga_act::sleep && entry.end == saga_end::timed_out) entry.end = saga_end::done;
  entry.ended_at = answer.at;
  if (entry.end == saga_end::refused)
    entry.why = answer.result.value_or("");
  else
    entry.result = answer.result;
}

saga_entry opened(const journal& in, const journal_row& row, const std::map<int, std::string>& given) {
  saga_entry entry{.n = row.n, .what = act_of(row), .name = in.outside_name(row.n), .at = row.at};
  entry.undone = in.about(row.n, row_kind::undone) != nullptr;
  if (row.kind == row_kind::done || row.kind == row_kind::version) {
    entry.end = saga_end::done;
    entry.result = row.result;
    return entry;
  }
  if (row.kind == row_kind::refused) {
    entry.end = saga_end::refused;
    entry.why = row.result.value_or("");
    return entry;
  }
  if (row.kind == row_kind::timer || row.kind == row_kind::waiting) entry.until = time_in(row.result);
  if (row.kind == row_kind::waiting) entry.key = row.input.value_or("");
  if (const auto found = given.find(row.n); found != given.end()) entry.by = hand_of(found->second);
  const auto* unknown = in.about(row.n, row_kind::unknown);
  entry.was_unknown = unknown != nullptr;
  if (const auto* answer = in.answer_of(row.n)) {
    take_answer(entry, *answer);
  } else if (unknown != nullptr) {
    entry.end = saga_end::unknown;
    entry.why = unknown->result.value_or("");
  }
  return entry;
}

// One entry per undo: where it began, or where it was done if that was one transaction.
std::optional<saga_entry> undo_of(const journal& in, const journal_row& row) {
  const auto* begun = in.about(*row.of, row_kind::undo_intent);
  if (row.kind == row_kind::undone && begun != nullptr && begun->n < row.n) return std::nullopt;
  saga_entry entry{.n = row.n, .what = saga_act::undo, .name = in.outside_name(*row.of), .at = row.at};
  const auto* undone = in.about(*row.of, row_kind::undone);
  if (undone == nullptr) return entry;
  entry.end = saga_end::done;
  if (undone != &row) entry.ended_at = undone->at;
  return entry;
}

std::optional<saga_entry> entry_of(const journal& in, const journal_row& row,
                                   const std::map<int, std::string>& given) {
  if (sagas::opens(row)) return opened(in, row, given);
  saga_entry entry{.n = row.n, .at = row.at, .end = saga_end::done, .why = row.result.value_or("")};
  switch (row.kind) {
    case row_kind::undo_intent:
    case row_kind::undone:
      return undo_of(in, row);
    case row_kind::undo_begun:
      entry.what = saga_act::undo_begun;
      return entry;
    case row_kind::operated:
      entry.what = saga_act::ordered;
      entry.name = row.name;
      return entry;
    case row_kind::held:
      entry.what = saga_act::held;
      if (row.of) entry.name = in.outside_name(*row.of);
      return entry;
    default:
      return std::nullopt;  // an answer, told with what it answers
  }
}

}  // namespace

std::string_view to_string(saga_act of) {
  constexpr std::array<std::string_view, 10> names = {"step",    "call",       "sleep", "wait",    "child",
                                                      "version", "undo_begun", "undo",  "ordered", "held"};
  return names.at(static_cast<std::size_t>(of));
}

std::string_view to_string(saga_end of) {
  constexpr std::array<std::string_view, 5> names = {"open", "done", "refused", "unknown", "timed_out"};
  return names.at(static_cast<std::size_t>(of));
}

saga_timeline timeline_of(const journal& of, const std::map<int, std::string>& given) {
  saga_timeline all;
  for (const auto& row : of.rows())
    if (auto entry = entry_of(of, row, given)) all.push_back(std::move(*entry));
  return all;
}

std::string id_by_hand(const std::string& unique, const std::string& who, const std::string& reason) {
  return std::string(hand) + unique + " " + who + ": " + reason;
}

std::string hand_of(const std::string& event_id) {
  if (!event_id.starts_with(hand)) return {};
  const auto after = event_id.find(' ', hand.size());
  return after == std::string::npos ? std::string() : event_id.substr(after + 1);
}

}  // namespace settle::inspect
