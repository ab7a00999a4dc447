#include "settle/guard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/nearest_name.hpp"
#include "base/text.hpp"
#include "base/time_text.hpp"
#include "base/zoo.hpp"
#include "guard/machine.hpp"
#include "queries/guard.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/publish.hpp"
#include "sql/own_table.hpp"
#include "sql/undo_point.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t reason_bytes_max = 1000;
constexpr std::size_t assignments_max = 32;
// Parameters of the two statements before those of the columns that are set along.
constexpr std::size_t move_parameters = 8;
constexpr std::size_t set_parameters = 2;

[[noreturn]] void refuse(const guard_options& of, const std::string& why) {
  throw error(errc::invalid_argument, fmt::format("guard '{}': {}", of.machine, why));
}

void check_names(const guard_options& of) {
  check_name(of.machine, {"guard_options.machine", guards::name_bytes_max});
  sql::check_identifier(of.key, "guard_options.key");
  sql::check_identifier(of.column, "guard_options.column");
  if (of.key == of.column) refuse(of, "key and column are the same column");
  for (const auto& state : of.states) check_name(state, {"a state of the guard", guards::name_bytes_max});
  for (const auto& one : of.transitions)
    for (const auto& who : one.who) check_name(who, {"who may move", event_limits::name_bytes_max});
  check_name(of.topic, {"guard_options.topic", event_limits::name_bytes_max, true});
}

void check_assignments(const guard_options& of, const std::vector<assignment>& set) {
  if (set.size() > assignments_max)
    refuse(of, fmt::format("{} columns to set, {} are allowed", set.size(), assignments_max));
  for (std::size_t i = 0; i < set.size(); ++i) {
    const auto& column = set[i].column;
    sql::check_identifier(column, "a column to set");
    const auto same = [&](const assignment& other) { return other.column == column; };
    if (column == of.column || column == of.key ||
        std::any_of(set.begin(), set.begin() + static_cast<std::ptrdiff_t>(i), same))
      refuse(of, fmt::format("the column '{}' cannot be set along: it is the key, the state, or there twice",
                             column));
  }
}

// The two statements of a move, with the columns that are set along.
struct move_statements {
  sql::filled_query move;
  sql::filled_query set_state;
};

std::vector<sql::blank> blanks_of(const guard_options& of, const std::vector<assignment>& set,
                                  std::size_t parameters_before) {
  std::string sets, values;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const auto number = parameters_before + i + 1;
    sets += fmt::format(", {} = ${}", sql::quoted_name(set[i].column), number);
    values += fmt::format(", ${}", number);
  }
  return {{"table", sql::checked_table(of.table, "guard_options.table")},
          {"key", sql::quoted_name(of.key)},
          {"column", sql::quoted_name(of.column)},
          {"sets", std::move(sets)},
          {"values", std::move(values)}};
}

move_statements statements_for(const guard_options& of, const std::vector<assignment>& set) {
  const auto& move =
      zoo::has(zoo::bug::state_checked_then_changed) ? queries::guard::look_at_state : queries::guard::move;
  return {{move, blanks_of(of, set, move_parameters)},
          {queries::guard::set_state, blanks_of(of, set, set_parameters)}};
}

std::string as_list(const std::vector<std::string>& all) {
  json_array list;
  for (const auto& one : all) list.add(one);
  return list.text();
}

event default_event(const guard_options& of, const guard_step& made) {
  return {.topic = of.topic,
          .type = of.machine + "." + made.to,
          .key = made.entity,
          .aggregate_type = of.machine,
          .payload = to_json(attributes{{"machine", made.machine},
                                        {"id", made.entity},
                                        {"from", made.from},
                                        {"to", made.to},
                                        {"actor", made.actor},
                                        {"reason", made.reason},
                                        {"at", to_rfc3339(made.at)}})};
}

}  // namespace

std::string_view to_string(move_outcome of) {
  switch (of) {
    case move_outcome::moved:
      return "moved";
    case move_outcome::unchanged:
      return "unchanged";
    case move_outcome::conflict:
      return "conflict";
    case move_outcome::missing:
      return "missing";
    case move_outcome::forbidden:
      return "forbidden";
  }
  return "unknown";
}

struct guard::parts {
  explicit parts(guard_options given)
      : options(std::move(given)),
        plain(statements_for(options, {})),
        probe_table(queries::guard::probe_table, blanks_of(options, {}, 0)),
        probe_state(queries::guard::probe_state, blanks_of(options, {}, 0)),
        count_undeclared(queries::guard::count_undeclared, blanks_of(options, {}, 0)) {}

  bool publishes() const { return !options.topic.empty() || options.make_event != nullptr; }
  void check_move(std::string_view to, const move_options& asked) const;
  move_result carry_out(transaction& tx, const value& key, guard_step wanted,
                        const move_options& asked) const;
  void complete(transaction& tx, const value& key, const move_statements& by, const guard_step& made,
                const move_options& asked) const;
  void publish_step(transaction& tx, const guard_step& made) const;

  guard_options options;
  move_statements plain;
  sql::filled_query probe_table, probe_state, count_undeclared;
};

guard::guard(guard_options options) {
  check_names(options);
  const auto problems = guards::problems_of(options);
  if (!problems.empty()) refuse(options, fmt::format("{}", fmt::join(problems, "; ")));
  parts_ = std::make_shared<const parts>(std::move(options));
}

void guard::parts::check_move(std::string_view to, const move_options& asked) const {
  if (std::ranges::find(options.states, to) == options.states.end())
    refuse(options,
           fmt::format("'{}' is no state of it; did you mean '{}'?", to, nearest_name(to, options.states)));
  check_name(asked.actor, {"the actor of a move", event_limits::name_bytes_max, true});
  if (!is_utf8(asked.reason) || asked.reason.size() > reason_bytes_max ||
      asked.reason.find('\0') != std::string::npos)
    refuse(options, fmt::format("a reason is UTF-8 of at most {} bytes", reason_bytes_max));
  check_assignments(options, asked.set);
}

// Where the first statement has only read, the others follow.
void guard::parts::complete(transaction& tx, const value& key, const move_statements& by,
                            const guard_step& made, const move_options& asked) const {
  statement set{by.set_state.get(), {key, made.to}};
  for (const auto& one : asked.set) set.values.push_back(one.to);
  if (tx.execute(set).affected() != 1)
    throw error(errc::constraint_violated,
                fmt::format("guard '{}': {} {} did not change; a trigger or a rule of {} prevents it",
                            options.machine, options.key, made.entity, options.table));
  tx.execute(queries::guard::note_move, {made.machine, made.entity, made.from, made.to, made.actor,
                                         made.reason, made.at, value(made.event)});
}

void guard::parts::publish_step(transaction& tx, const guard_step& made) const {
  const auto what = options.make_event ? options.make_event(made) : default_event(options, made);
  publish(tx, what, {.id = made.event});
}

move_result guard::parts::carry_out(transaction& tx, const value& key, guard_step wanted,
                                    const move_options& asked) const {
  const auto sources = guards::sources_for(options, wanted.to, asked);
  std::optional<move_statements> own;
  if (!asked.set.empty()) own = statements_for(options, asked.set);
  const auto& by = own ? *own : plain;
  statement move{by.move.get(),
                 {key, wanted.to, as_list(sources), wanted.machine, wanted.actor, wanted.reason, wanted.at,
                  value(wanted.event)}};
  for (const auto& one : asked.set) move.values.push_back(one.to);
  namespace columns = queries::guard::move_columns;
  const auto found = tx.execute(move);
  if (found.empty()) return {};
  if (found.size() > 1)
    refuse(options, fmt::format("{} rows of {} have the {} {}; a key must be unique", found.size(),
                                options.table, options.key, wanted.entity));
  const auto row = found[0];
  const auto state = row[columns::state].is_null() ? std::nullopt : std::optional(row[columns::state].text());
  const auto outcome = guards::judge(options, state, wanted.to, sources);
  if (outcome != move_outcome::moved) return {outcome, state.value_or("")};
  wanted.entity = row[columns::entity].text();
  wanted.from = *state;
  std::optional<sql::undo_point> before;
  if (row[columns::moved].integer() == 0) {
    before.emplace(tx);
    complete(tx, key, by, wanted, asked);
  }
  if (publishes()) publish_step(tx, wanted);
  if (before) before->leave();
  return {outcome, wanted.to, wanted.from, wanted.event};
}

move_result guard::move(transaction& tx, const value& key, std::string_view to,
                        const move_options& options) const {
  parts_->check_move(to, options);
  guard_step wanted{.machine = parts_->options.machine,
                    .entity = sql::key_text(key, "the key of a guarded row"),
                    .from = {},
                    .to = std::string(to),
                    .actor = options.actor,
                    .reason = options.reason,
                    .at = tx.env().now()};
  if (parts_->publishes()) wanted.event = tx.env().ids->next_as<event_id>();
  const auto carry_out = [&] { return parts_->carry_out(tx, key, wanted, options); };
  // Code of the caller's, or an event of it that is refused, may fail when the row has moved already.
  auto done = with_fault_points(tx.env(), "guard.move", [&] {
    return parts_->options.make_event ? sql::whole(tx, carry_out) : carry_out();
  });
  tx.env().counters->add("settle_guard_moves_total",
                         {{"machine", parts_->options.machine}, {"outcome", to_string(done.outcome)}});
  return done;
}

guard_report guard::check(database& db) const {
  auto tx = db.read();
  try {
    tx.execute(parts_->probe_table.get());
    for (const auto& state : parts_->options.states) tx.execute(parts_->probe_state.get(), {state});
  } catch (const error& e) {
    if (e.code() != errc::statement_failed && e.code() != errc::invalid_argument) throw;
    refuse(parts_->options,
           fmt::format("the table {} of {} does not fit: {}", parts_->options.table, db.name(), e.what()));
  }
  namespace columns = queries::guard::count_undeclared_columns;
  const auto rows = tx.execute(parts_->count_undeclared.get(), {as_list(parts_->options.states)});
  guard_report report;
  for (std::size_t i = 0; i < rows.size(); ++i)
    report.undeclared.push_back({rows[i][columns::state].is_null() ? "" : rows[i][columns::state].text(),
                                 rows[i][columns::entities].integer()});
  return report;
}

std::vector<guard_step> guard::history(transaction& tx, const value& key, std::size_t at_most) const {
  namespace columns = queries::guard::read_history_columns;
  const auto rows = tx.execute(queries::guard::read_history,
                               {parts_->options.machine, sql::key_text(key, "the key of a guarded row"),
                                static_cast<std::int64_t>(at_most)});
  std::vector<guard_step> steps;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    steps.push_back({.machine = parts_->options.machine,
                     .entity = row[columns::entity].text(),
                     .from = row[columns::from_state].text(),
                     .to = row[columns::to_state].text(),
                     .actor = row[columns::actor].text(),
                     .reason = row[columns::reason].text(),
                     .at = row[columns::at].time(),
                     .event = row[columns::event_id].is_null()
                                  ? std::nullopt
                                  : event_id::parse(row[columns::event_id].text())});
  }
  return steps;
}

std::string guard::mermaid() const { return guards::to_mermaid(parts_->options); }

const guard_options& guard::options() const { return parts_->options; }

}  // namespace settle::inline v0
