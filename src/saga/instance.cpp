#include "saga/instance.hpp"

#include <algorithm>
#include <array>

#include "base/derived_id.hpp"
#include "base/quadratic_wait.hpp"
#include "saga/body_run.hpp"
#include "saga/commands.hpp"
#include "saga/seams.hpp"
#include "settle/error.hpp"

namespace settle::sagas {
namespace {

constexpr std::array<std::string_view, 6> status_names = {"RUNNING",      "COMPLETED",   "FAILED",
                                                          "COMPENSATING", "COMPENSATED", "HELD"};
constexpr duration outage_wait = std::chrono::seconds(1);

}  // namespace

std::string_view to_string(saga_status of) { return status_names.at(static_cast<std::size_t>(of)); }

saga_status status_from(std::string_view text) {
  const auto found = std::ranges::find(status_names, text);
  if (found == status_names.end())
    throw error(errc::unexpected_result, "a saga has the status " + std::string(text));
  return static_cast<saga_status>(found - status_names.begin());
}

std::string call_key(saga_id of, const std::string& outside_name, bool undo) {
  return derived_id({"saga", "call", of.text(), outside_name, undo ? "undo" : "do", ""}).text();
}

instance::instance(stored_saga stored, const detail::saga_definition& definition, journal stored_rows,
                   std::int64_t epoch_now)
    : row(std::move(stored)),
      what(definition),
      rows(std::move(stored_rows)),
      epoch(epoch_now),
      has_commands(std::ranges::any_of(what.steps, [](const auto& one) { return !one->replies.empty(); })),
      rows_stored(rows.rows().size()),
      status(row.status),
      attempts(row.attempts),
      last_error(row.last_error) {}

instance::~instance() = default;

const journal_row& instance::note(journal_row of) {
  of.at = now;
  of.epoch = epoch;
  return rows.append(std::move(of));
}

detail::step_pointer instance::step(const std::string& name) const {
  for (const auto& one : what.steps)
    if (one->name == name) return one;
  return nullptr;
}

step_lookup instance::lookup() const {
  return [this](const std::string& name) -> std::optional<step_facts> {
    const auto found = step(name);
    if (!found) return std::nullopt;
    return step_facts{found->has_undo, found->pivot};
  };
}

void instance::fail(const std::string& reason) {
  if (pivot_passed(rows, lookup())) {
    hold("it cannot be undone any more: " + reason);
    return;
  }
  note({.kind = row_kind::undo_begun, .result = reason});
  status = saga_status::compensating;
  last_error = reason;
  attempts = 0;
  retry_at.reset();
}

void instance::hold(const std::string& reason, std::optional<int> of) {
  note({.kind = row_kind::held, .name = of ? rows.at(*of).name : std::string(), .result = reason, .of = of});
  status = saga_status::held;
  held_now = true;
  last_error = reason;
  retry_at.reset();
}

void instance::end(saga_status how) {
  status = how;
  retry_at.reset();
  calls.clear();
}

bool instance::retry_later(const step_retry& by, bool undo, failure_class why, const std::string& error) {
  last_error = error;
  if (why == failure_class::outage) {  // of something that others need too: nobody is charged
    retry_at = now + outage_wait;
    return true;
  }
  ++attempts;
  if (attempts >= (undo ? by.undo_attempts_max : by.attempts_max)) return false;
  retry_at = now + quadratic_wait(attempts, by.wait, by.wait_max);
  return true;
}

void instance::succeeded() {
  attempts = 0;
  last_error.clear();
  retry_at.reset();
}

origin instance::cause() const {
  auto made = row.came_with;
  if (made.correlation_id.empty()) made.correlation_id = row.id.text();
  made.causation_id = row.id.text();
  return made;
}

call::facts instance::next_facts(const std::string& scope, const std::string& name) const {
  auto outside = rows.next_outside_name(scope, name);
  auto key = call_key(row.id, outside, false);
  return {row.id, std::move(outside), std::move(key), epoch, false};
}

saga_id instance::child_id(int n) const {
  return saga_id(derived_id({"saga", "child", row.id.text(), rows.outside_name(n), ""}).value());
}

std::string instance::child_text(int n) const {
  const auto& of = rows.at(n);
  std::string_view parts = *of.input;
  return "the saga " + of.name + " of " + std::string(detail::take_stored(parts));
}

call_order instance::order_of(int n, call_op op) const {
  const auto& of = rows.at(n);
  const bool undo = op == call_op::undo;
  call_order made{.no = row.no, .n = n, .op = op, .epoch = epoch};
  made.step = step(of.name);
  made.input = of.input.value_or("");
  auto name = rows.outside_name(n);
  auto key = key_of_attempt(call_key(row.id, name, undo), epoch);
  made.facts = {row.id, std::move(name), std::move(key), epoch, undo};
  if (const auto* answer = rows.about(n, row_kind::outcome); undo && answer != nullptr)
    made.result = answer->result.value_or("");
  return made;
}

bool instance::is_calling() const {
  return std::ranges::any_of(calls, [](const auto& one) { return one.second.out; });
}

std::optional<timestamp> instance::due_at() const {
  if (has_ended(status) || status == saga_status::held) return std::nullopt;
  if (wants_more) return now;
  std::optional<timestamp> first;
  const auto consider = [&](const std::optional<timestamp>& when) {
    if (when && (!first || *when < *first)) first = when;
  };
  consider(retry_at);
  for (const auto& [key, one] : calls)
    if (!one.out && (key.second || status == saga_status::running)) consider(one.retry_at);
  if (status == saga_status::running) {
    if (!is_calling()) consider(row.deadline);  // its answers come first, and wake it
    if (body) consider(body->next_timer());
  }
  if (has_commands && !has_ended(status))
    for (const auto& one : rows.rows())
      if (awaits_reply(*this, one)) consider(reply_deadline(*this, one));
  if (first && patient_until) first = std::max(*first, *patient_until);
  return first;
}

}  // namespace settle::sagas
