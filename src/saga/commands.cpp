#include "saga/commands.hpp"

#include <algorithm>
#include <exception>

#include "base/text.hpp"
#include "settle/broker.hpp"
#include "settle/publish.hpp"

namespace settle::inline v0::detail {

void stage_command(transaction& tx, const call& of, event what) {
  what.headers["settlesaga"] = of.saga().text();
  what.headers["settlestep"] = of.step();
  what.headers["settleop"] = of.is_undo() ? "undo" : "do";
  publish(tx, what, {.id = event_id::parse(of.key()).value()});
}

}  // namespace settle::inline v0::detail

namespace settle::sagas {
namespace {

constexpr char separator = '\n';
constexpr std::size_t reason_bytes_max = 1000;

std::string reason_of(const detail::reply_kind& kind, std::string_view payload) {
  try {
    return storable_text(kind.refusal(payload), reason_bytes_max);
  } catch (const std::exception& e) {
    return "its refusal cannot be read: " + storable_text(e.what(), reason_bytes_max);
  }
}

}  // namespace

std::string reply_text(std::string_view type, std::string_view payload) {
  return std::string(type).append(1, separator).append(payload);
}

bool is_command(const instance& of, const journal_row& row) {
  if (!of.has_commands || row.kind != row_kind::intent) return false;
  const auto step = of.step(row.name);
  return step && step->command;
}

bool awaits_reply(const instance& of, const journal_row& row) {
  if (!of.has_commands || row.kind != row_kind::intent || of.rows.answer_of(row.n) != nullptr) return false;
  if (has_ended(of.status)) return false;
  if (of.status == saga_status::compensating && of.rows.about(row.n, row_kind::unknown) != nullptr)
    return false;
  return is_command(of, row);
}

bool awaits_replies(const instance& of) {
  return of.has_commands &&
         std::ranges::any_of(of.rows.rows(), [&](const journal_row& row) { return awaits_reply(of, row); });
}

timestamp reply_deadline(const instance& of, const journal_row& row) {
  auto since = row.at;
  if (const auto* last = of.rows.last(row_kind::operated); last != nullptr) since = std::max(since, last->at);
  return since + of.step(row.name)->reply_within;
}

void note_reply(instance& of, int n, std::string_view reply) {
  const auto row = of.rows.at(n);
  const auto end = reply.find(separator);
  const auto type = reply.substr(0, end);
  const auto payload = end == std::string_view::npos ? std::string_view() : reply.substr(end + 1);
  journal_row noted{.kind = row_kind::outcome, .scope = row.scope, .name = row.name, .of = n};
  noted.result = std::string(payload);
  const auto step = of.step(row.name);
  for (const auto& kind : step->replies) {
    if (kind.type != type || !kind.refusal) continue;
    noted.kind = row_kind::refused;
    noted.result = reason_of(kind, payload);
    noted.input = std::string(never_done);  // the participant itself says so
  }
  if (noted.kind == row_kind::outcome) ++of.steps;
  of.note(std::move(noted));
  of.succeeded();
}

}  // namespace settle::sagas
