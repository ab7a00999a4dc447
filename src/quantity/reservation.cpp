// Reservations: taken for the time being, under an id of the caller's.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"
#include "quantity/engine.hpp"
#include "queries/quantity.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr duration for_long_max = std::chrono::hours(24) * 3660;

std::string checked_id(std::string_view id) {
  check_name(id, {"the id of a reservation", quantity_limits::id_bytes_max});
  return std::string(id);
}

// What is wanted as a reservation's lines have it: under the names that the database gives to its keys.
std::vector<quantities::demand> as_stored(std::span<const quantities::demand> wanted,
                                          std::span<const std::string> names) {
  std::vector<quantities::demand> lines(wanted.begin(), wanted.end());
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].item = names[i];
  std::ranges::sort(lines, {}, &quantities::demand::item);
  return lines;
}

}  // namespace

std::string_view to_string(reservation_status of) {
  constexpr std::array<std::string_view, 5> names{"missing", "held", "confirmed", "cancelled", "expired"};
  return names.at(static_cast<std::size_t>(of));
}

std::string_view to_string(reserve_outcome of) {
  constexpr std::array<std::string_view, 5> names{"reserved", "insufficient", "missing", "mismatch", "ended"};
  return names.at(static_cast<std::size_t>(of));
}

std::vector<quantities::demand> quantity::engine::lines_of(const result& rows) const {
  namespace columns = queries::quantity::read_lines_columns;
  std::vector<quantities::demand> lines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    quantities::demand one{row[columns::item].text(), row[columns::item].text(),
                           row[columns::amount].integer()};
    if (row[columns::is_number].integer() != 0) {
      std::int64_t number = 0;
      std::from_chars(one.item.data(), one.item.data() + one.item.size(), number);
      one.key = number;
    }
    lines.push_back(std::move(one));
  }
  // As demands_of() sorts, whatever the database's collation is.
  std::ranges::sort(lines, {}, &quantities::demand::item);
  return lines;
}

reserve_result quantity::engine::repeated_reserve(transaction& tx, const std::string& id, const result& found,
                                                  std::span<const quantities::demand> wanted) const {
  if (found.empty())
    throw error(errc::store_busy, fmt::format("quantity '{}': the reservation {} was just being forgotten",
                                              options.resource, id));
  const auto lines = lines_of(tx.execute(queries::quantity::read_lines, {options.resource, id}));
  namespace columns = queries::quantity::lock_reservation_columns;
  reserve_result met{.repeated = true, .expires_at = found[0][columns::expires_at].time()};
  met.status = quantities::status_of(found[0][columns::status].text(), met.expires_at, tx.env().now());
  const bool gone = met.status == reservation_status::cancelled || met.status == reservation_status::expired;
  if (!std::ranges::equal(lines, wanted))
    met.outcome = reserve_outcome::mismatch;
  else
    met.outcome = gone ? reserve_outcome::ended : reserve_outcome::reserved;
  return met;
}

reserve_result quantity::engine::reserve(transaction& tx, const std::string& id,
                                         std::span<const quantity_line> lines, duration for_long,
                                         const std::string& reason) const {
  const auto wanted = quantities::demands_of(lines);
  const auto now = tx.env().now();
  const auto until = now + for_long;
  const std::array<statement, 2> own_row{
      {{queries::quantity::insert_reservation, {options.resource, id, now, until}},
       {queries::quantity::lock_reservation, {options.resource, id}}}};
  const auto answers = lock(tx, wanted, own_row);
  const bool inserted = answers[0].affected() == 1;
  const auto found = read_locked(std::span(answers).subspan(own_row.size()), wanted);
  if (!inserted) return repeated_reserve(tx, id, answers[1], as_stored(wanted, found.names));

  const auto judged = quantities::judge_basket(wanted, found.there, options.minimum);
  reserve_result done{.expires_at = until};
  for (const auto& line : lines) done.lines.push_back(judged.items.at(sql::key_text(line.item, "the key")));
  if (judged.outcome != take_outcome::taken) {
    tx.execute(queries::quantity::drop_reservation, {options.resource, id});
    done.outcome =
        judged.outcome == take_outcome::missing ? reserve_outcome::missing : reserve_outcome::insufficient;
    return done;
  }
  std::vector<item_change> changes;
  std::vector<log_line> log;
  std::vector<parameters> rows;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& one = wanted[i];
    changes.push_back({one.key, -one.amount});
    log.push_back({found.names[i], -one.amount, judged.items.at(one.item).there, reason, id});
    const bool is_number = std::holds_alternative<std::int64_t>(one.key.variant());
    rows.push_back({options.resource, id, found.names[i], one.amount, is_number ? 1 : 0});
  }
  const repeated insert_lines{queries::quantity::insert_line, rows};
  apply(tx, changes, log, {&insert_lines, 1});
  done.outcome = reserve_outcome::reserved;
  done.status = reservation_status::held;
  return done;
}

reservation_end quantity::engine::confirm(transaction& tx, const std::string& id) const {
  const auto found = tx.execute(queries::quantity::lock_reservation, {options.resource, id});
  if (found.empty()) return {};
  namespace columns = queries::quantity::lock_reservation_columns;
  const auto now = tx.env().now();
  const auto status =
      quantities::status_of(found[0][columns::status].text(), found[0][columns::expires_at].time(), now);
  if (status != reservation_status::held) return {status, false};
  tx.post(queries::quantity::end_reservation, {options.resource, id, "CONFIRMED", now});
  return {reservation_status::confirmed, true};
}

reservation_end quantity::engine::cancel(transaction& tx, const std::string& id,
                                         const std::string& reason) const {
  const parameters by_id{options.resource, id};
  const std::array<repeated, 2> both{
      {{queries::quantity::lock_reservation, {&by_id, 1}}, {queries::quantity::read_lines, {&by_id, 1}}}};
  const auto found = tx.execute_all(both);
  if (found[0].empty()) return {};
  namespace columns = queries::quantity::lock_reservation_columns;
  const auto stored = found[0][0][columns::status].text();
  if (stored != "HELD")
    return {quantities::status_of(stored, found[0][0][columns::expires_at].time(), tx.env().now()), false};
  const ending one{id, lines_of(found[1])};
  give_back(tx, {&one, 1}, "CANCELLED", reason);
  return {reservation_status::cancelled, true};
}

void quantity::engine::tell_trouble(const environment& env, const quantities::returned& one) const {
  env.log->write(log_level::error, "reservation_line_not_returned",
                 {{"resource", options.resource},
                  {"reservation", one.reservation},
                  {"item", one.what.item},
                  {"amount", std::to_string(one.what.amount)},
                  {"why", std::string(one.trouble)}});
}

void quantity::engine::give_back(transaction& tx, std::span<const ending> all, std::string_view status,
                                 const std::string& reason) const {
  std::vector<quantities::returned> plan;
  std::map<std::string, value> keys;
  for (const auto& [id, lines] : all) {
    for (const auto& line : lines) {
      plan.push_back({.reservation = id, .what = line});
      keys.emplace(line.item, line.key);
    }
  }
  std::vector<quantities::demand> items;
  for (const auto& [item, key] : keys) items.push_back({item, key, 0});
  const auto found = read_locked(lock(tx, items), items);
  std::map<std::string, std::optional<std::int64_t>> there;
  for (std::size_t i = 0; i < items.size(); ++i) there[items[i].item] = found.there[i];
  quantities::plan_returns(plan, there, options.maximum);

  std::vector<log_line> log;
  for (const auto& one : plan) {
    if (!one.trouble.empty()) tell_trouble(tx.env(), one);
    log.push_back({one.what.item, one.change, one.after,
                   one.trouble.empty() ? reason : fmt::format("{}, not returned: {}", reason, one.trouble),
                   one.reservation});
  }
  std::vector<item_change> changes;
  for (const auto& [item, sum] : quantities::sums_of(plan)) changes.push_back({keys.at(item), sum});
  std::vector<parameters> ends;
  for (const auto& one : all) ends.push_back({options.resource, one.id, status, tx.env().now()});
  const repeated end{queries::quantity::end_reservation, ends};
  apply(tx, changes, log, {&end, 1});
}

reserve_result quantity::reserve(transaction& tx, std::string_view id, std::span<const quantity_line> lines,
                                 duration for_long, std::string_view reason) const {
  if (for_long <= duration::zero() || for_long > for_long_max)
    engine_->refuse("a reservation lasts for more than nothing and at most ten years");
  const quantity_note note{std::string(reason), checked_id(id)};
  engine_->check_note(note);
  auto done = with_fault_points(tx.env(), "quantity.reserve", [&] {
    return sql::whole(tx, [&] { return engine_->reserve(tx, note.reference, lines, for_long, note.reason); });
  });
  engine_->count(tx.env(), "settle_reservations_total", to_string(done.outcome));
  return done;
}

reservation_end quantity::confirm(transaction& tx, std::string_view id) const {
  const auto own = checked_id(id);
  return with_fault_points(tx.env(), "quantity.confirm", [&] { return engine_->confirm(tx, own); });
}

reservation_end quantity::cancel(transaction& tx, std::string_view id, std::string_view reason) const {
  const quantity_note note{std::string(reason), checked_id(id)};
  engine_->check_note(note);
  return with_fault_points(tx.env(), "quantity.cancel", [&] {
    return sql::whole(tx, [&] { return engine_->cancel(tx, note.reference, note.reason); });
  });
}

}  // namespace settle::inline v0
