#include "settle/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/zoo.hpp"
#include "quantity/engine.hpp"
#include "queries/quantity.hpp"
#include "settle/error.hpp"
#include "settle/event.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t resource_bytes_max = 100;
constexpr std::size_t reason_bytes_max = 1000;
constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
constexpr auto highest = std::numeric_limits<std::int64_t>::max();

quantity_options checked(quantity_options given) {
  check_name(given.resource, {"quantity_options.resource", resource_bytes_max});
  sql::check_identifier(given.key, "quantity_options.key");
  sql::check_identifier(given.column, "quantity_options.column");
  if (given.key == given.column)
    throw error(errc::invalid_argument, "quantity_options: key and column are the same column");
  if (given.minimum > given.maximum)
    throw error(errc::invalid_argument, fmt::format("quantity_options: minimum {} is above maximum {}",
                                                    given.minimum, given.maximum));
  return given;
}

const query& lock_item_query() {
  return zoo::has(zoo::bug::quantity_read_then_written) ? queries::quantity::read_item
                                                        : queries::quantity::lock_item;
}

sql::filled_query filled(const query& text, const quantity_options& of) {
  const std::array<sql::blank, 3> names{{{"table", sql::checked_table(of.table, "quantity_options.table")},
                                         {"key", sql::quoted_name(of.key)},
                                         {"column", sql::quoted_name(of.column)}}};
  return {text, names};
}

}  // namespace

std::string_view to_string(take_outcome of) {
  constexpr std::array<std::string_view, 3> names{"taken", "insufficient", "missing"};
  return names.at(static_cast<std::size_t>(of));
}

std::string_view to_string(add_outcome of) {
  constexpr std::array<std::string_view, 3> names{"added", "excessive", "missing"};
  return names.at(static_cast<std::size_t>(of));
}

quantity::engine::engine(quantity_options given)
    : options(checked(std::move(given))),
      change_one_query(filled(queries::quantity::change_one, options)),
      lock_item(filled(lock_item_query(), options)),
      change_item(filled(queries::quantity::change_item, options)),
      probe(filled(queries::quantity::probe, options)),
      count_below(filled(queries::quantity::count_below, options)) {}

void quantity::engine::refuse(const std::string& why) const {
  throw error(errc::invalid_argument, fmt::format("quantity '{}': {}", options.resource, why));
}

std::int64_t quantity::engine::amount_in(const value& cell) const {
  if (!std::holds_alternative<std::int64_t>(cell.variant()))
    refuse(fmt::format("{}.{} is not an integer", options.table, options.column));
  return cell.integer();
}

void quantity::engine::check_unchanged_by_trigger(std::int64_t affected, const value& key) const {
  if (affected == 1) return;
  throw error(errc::constraint_violated,
              fmt::format("quantity '{}': {} {} did not change; a trigger or a rule of {} prevents it",
                          options.resource, options.key, sql::key_text(key, "the key"), options.table));
}

void quantity::engine::check_note(const quantity_note& note) const {
  check_name(note.reference, {"the reference of a change", quantity_limits::id_bytes_max, true});
  if (!is_utf8(note.reason) || note.reason.size() > reason_bytes_max ||
      note.reason.find('\0') != std::string::npos)
    refuse(fmt::format("a reason is UTF-8 of at most {} bytes", reason_bytes_max));
}

void quantity::engine::count(const environment& env, std::string_view name, std::string_view outcome) const {
  env.counters->add(name, {{"resource", options.resource}, {"outcome", outcome}});
}

quantity::engine::one_change quantity::engine::change_one(transaction& tx, const value& item,
                                                          std::int64_t change, bounds within,
                                                          const quantity_note& note) const {
  const auto now = tx.env().now();
  const auto found =
      zoo::has(zoo::bug::quantity_read_then_written)
          ? tx.execute(lock_item.get(), {item})
          : tx.execute(change_one_query.get(), {item, change, within.low, within.high, options.resource,
                                                note.reason, note.reference, now});
  if (found.size() > 1)
    refuse(fmt::format("{} rows of {} have the {} {}; a key must be unique", found.size(), options.table,
                       options.key, sql::key_text(item, "the key")));
  namespace columns = queries::quantity::change_one_columns;
  if (found.empty() || found[0][columns::there].is_null()) return {};
  const auto there = amount_in(found[0][columns::there]);
  if (const auto& after = found[0][columns::after]; !after.is_null()) return {there, amount_in(after)};
  const auto after = quantities::changed(there, change, within.low, within.high);
  if (!after) return {there, std::nullopt};
  // The statement has only read, so the rest follows; the log only once it is known that there is a change.
  const auto changed = tx.execute(change_item.get(), {item, change});
  check_unchanged_by_trigger(changed.affected(), item);
  tx.execute(queries::quantity::log_change, {options.resource, found[0][columns::item].text(), change, *after,
                                             note.reason, note.reference, now});
  return {there, after};
}

std::vector<result> quantity::engine::lock(transaction& tx, std::span<const quantities::demand> items,
                                           std::span<const statement> first) const {
  std::vector<parameters> keys;
  for (const auto& one : items) keys.push_back({one.key});
  std::vector<repeated> all;
  for (const auto& one : first) all.push_back({one.text, {&one.values, 1}});
  for (const auto& key : keys) all.push_back({lock_item.get(), {&key, 1}});  // each has an answer of its own
  auto answers = tx.execute_all(all);
  SETTLE_CHECK(answers.size() == all.size(), "an answer to every statement");
  return answers;
}

quantity::engine::locked quantity::engine::read_locked(std::span<const result> rows,
                                                       std::span<const quantities::demand> items) const {
  SETTLE_CHECK(rows.size() == items.size(), "an answer for every item");
  locked found;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (rows[i].size() > 1)
      refuse(fmt::format("{} rows of {} have the {} {}; a key must be unique", rows[i].size(), options.table,
                         options.key, items[i].item));
    namespace columns = queries::quantity::lock_item_columns;
    const bool is_there = !rows[i].empty() && !rows[i][0][columns::there].is_null();
    found.there.push_back(is_there ? std::optional(amount_in(rows[i][0][columns::there])) : std::nullopt);
    found.names.push_back(rows[i].empty() ? items[i].item : rows[i][0][columns::item].text());
  }
  auto sorted = found.names;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    refuse(fmt::format("the item {} is there twice, written in two ways", *twice));
  return found;
}

void quantity::engine::apply(transaction& tx, std::span<const item_change> changes,
                             std::span<const log_line> log, std::span<const repeated> more) const {
  const auto now = tx.env().now();
  std::vector<parameters> items, lines;
  for (const auto& one : changes) items.push_back({one.key, one.change});
  for (const auto& one : log)
    lines.push_back({options.resource, one.item, one.change, one.after, one.reason, one.reference, now});
  std::vector<repeated> all;
  if (!items.empty()) all.push_back({change_item.get(), items});
  if (!lines.empty()) all.push_back({queries::quantity::log_change, lines});
  all.insert(all.end(), more.begin(), more.end());
  const auto answers = tx.execute_all(all);
  for (std::size_t i = 0; i < changes.size(); ++i)
    check_unchanged_by_trigger(answers[i].affected(), changes[i].key);
}

basket_result quantity::engine::take_all(transaction& tx, std::span<const quantity_line> lines,
                                         const quantity_note& note) const {
  const auto wanted = quantities::demands_of(lines);
  const auto found = read_locked(lock(tx, wanted), wanted);
  const auto judged = quantities::judge_basket(wanted, found.there, options.minimum);
  basket_result done{judged.outcome, {}};
  for (const auto& line : lines) done.lines.push_back(judged.items.at(sql::key_text(line.item, "the key")));
  if (!done) return done;
  std::vector<item_change> changes;
  std::vector<log_line> log;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& one = wanted[i];
    changes.push_back({one.key, -one.amount});
    log.push_back(
        {found.names[i], -one.amount, judged.items.at(one.item).there, note.reason, note.reference});
  }
  apply(tx, changes, log);
  return done;
}

quantity::quantity(quantity_options options) : engine_(std::make_shared<const engine>(std::move(options))) {}

const quantity_options& quantity::options() const { return engine_->options; }

take_result quantity::take(transaction& tx, const value& item, std::int64_t amount,
                           const quantity_note& note) const {
  const quantity_line line{item, amount};
  quantities::demands_of({&line, 1});
  engine_->check_note(note);
  const auto done = with_fault_points(tx.env(), "quantity.change", [&] {
    return engine_->change_one(tx, item, -amount, {engine_->options.minimum, highest}, note);
  });
  take_result result;
  if (done.there)
    result = done.after ? take_result{take_outcome::taken, *done.after}
                        : take_result{take_outcome::insufficient, *done.there};
  engine_->count(tx.env(), "settle_quantity_takes_total", to_string(result.outcome));
  return result;
}

add_result quantity::add(transaction& tx, const value& item, std::int64_t amount,
                         const quantity_note& note) const {
  const quantity_line line{item, amount};
  quantities::demands_of({&line, 1});
  engine_->check_note(note);
  const auto done = with_fault_points(tx.env(), "quantity.change", [&] {
    return engine_->change_one(tx, item, amount, {lowest, engine_->options.maximum}, note);
  });
  if (!done.there) return {};
  return done.after ? add_result{add_outcome::added, *done.after}
                    : add_result{add_outcome::excessive, *done.there};
}

basket_result quantity::take_all(transaction& tx, std::span<const quantity_line> lines,
                                 const quantity_note& note) const {
  engine_->check_note(note);
  auto done = with_fault_points(tx.env(), "quantity.change", [&] {
    return sql::whole(tx, [&] { return engine_->take_all(tx, lines, note); });
  });
  engine_->count(tx.env(), "settle_quantity_takes_total", to_string(done.outcome));
  return done;
}

std::int64_t quantity::check(database& db) const {
  auto tx = db.read();
  std::string type;
  try {
    type = tx.execute(engine_->probe.get())[0][queries::quantity::probe_columns::type].text();
  } catch (const error& e) {
    if (e.code() != errc::statement_failed) throw;
    engine_->refuse(fmt::format("the table {} of {} does not fit: {}", options().table, db.name(), e.what()));
  }
  if (type != "smallint" && type != "integer" && type != "bigint")
    engine_->refuse(
        fmt::format("{}.{} is {}, it must be an integer", options().table, options().column, type));
  return tx
      .execute(engine_->count_below.get(),
               {options().minimum})[0][queries::quantity::count_below_columns::items]
      .integer();
}

}  // namespace settle::inline v0
