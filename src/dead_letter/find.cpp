#include "dead_letter/find.hpp"

#include <algorithm>
#include <limits>

#include "base/json.hpp"
#include "dead_letter/row.hpp"
#include "queries/dead_letter.hpp"

namespace settle::inline v0 {
namespace dlq {
namespace {

constexpr std::size_t ids_per_statement_max = 1000;
constexpr std::size_t limit_max = 1'000'000'000;  // what every database takes for a limit
constexpr auto every_status = {dead_letter_status::fresh, dead_letter_status::replaying,
                               dead_letter_status::replayed, dead_letter_status::discard_requested,
                               dead_letter_status::discarded};

void append_ids(std::vector<std::int64_t>& to, const result& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    to.push_back(rows[i][queries::dead_letter::find_letters_columns::id].integer());
}

void sort_and_cut(std::vector<std::int64_t>& ids, std::size_t at_most) {
  std::ranges::sort(ids);
  const auto twice = std::ranges::unique(ids);
  ids.erase(twice.begin(), twice.end());
  if (ids.size() > at_most) ids.resize(at_most);
}

}  // namespace

search::search(const dead_letter_filter& which, dead_letter_status status)
    : which_(which), status_(to_string(status)) {}

search search::to_replay(const dead_letter_filter& which, dead_letter_status status, timestamp asked_until) {
  search made(which, status);
  made.asked_until_ = asked_until;
  made.spares_copies_ = status == dead_letter_status::fresh && !made.by_id() && !which.reason;
  return made;
}

std::int64_t search::count_spared(transaction& tx) const {
  if (!spares_copies_) return 0;
  auto copies = *this;
  copies.spares_copies_ = false;
  copies.which_.reason = dead_letter_reason::beyond_dedup_horizon;
  return copies.measure(tx).count;
}

void search::append_conditions(parameters& to) const {
  to.emplace_back(which_.consumer);
  to.emplace_back(which_.topic);
  to.emplace_back(which_.type);
  to.emplace_back(which_.key);
  to.emplace_back(which_.reason ? to_string(*which_.reason) : std::string_view());
  to.emplace_back(which_.failed_from.value_or(timestamp::min()));
  to.emplace_back(which_.failed_until.value_or(timestamp::max()));
  to.emplace_back(asked_until_);
  to.emplace_back(spares_copies_ ? to_string(dead_letter_reason::beyond_dedup_horizon) : std::string_view());
}

std::vector<std::int64_t> search::find(transaction& tx, const id_range& in, std::size_t at_most) const {
  if (by_id()) return find_among(tx, in, at_most);
  parameters values{status_, in.after, in.upto};
  append_conditions(values);
  values.emplace_back(static_cast<std::int64_t>(std::min<std::size_t>(at_most, limit_max)));
  std::vector<std::int64_t> ids;
  append_ids(ids, tx.execute({queries::dead_letter::find_letters, std::move(values)}));
  return ids;
}

// The ids that were asked for: by themselves, by their message, or by both.
std::vector<std::int64_t> search::wanted(transaction& tx, const id_range& in) const {
  auto ids = which_.ids;
  sort_and_cut(ids, ids.size());
  if (!which_.event_id.empty()) {
    std::vector<std::int64_t> of_message;
    append_ids(of_message, tx.execute(queries::dead_letter::find_letters_of_message, {which_.event_id}));
    if (!ids.empty())
      std::erase_if(of_message, [&](auto id) { return !std::ranges::binary_search(ids, id); });
    ids = std::move(of_message);
  }
  std::erase_if(ids, [&](auto id) { return id <= in.after || id > in.upto; });
  return ids;
}

std::vector<std::int64_t> search::find_among(transaction& tx, const id_range& in, std::size_t at_most) const {
  const auto all = wanted(tx, in);
  std::vector<std::int64_t> found;
  for (std::size_t at = 0; at < all.size() && found.size() < at_most; at += ids_per_statement_max) {
    const auto some = std::span(all).subspan(at, std::min(ids_per_statement_max, all.size() - at));
    parameters values{json_ids(some), status_};
    append_conditions(values);
    append_ids(found, tx.execute({queries::dead_letter::find_letters_among, std::move(values)}));
  }
  sort_and_cut(found, at_most);
  return found;
}

search::extent search::measure(transaction& tx) const {
  if (by_id()) {
    const auto all = find_among(tx, {}, std::numeric_limits<std::size_t>::max());
    return {static_cast<std::int64_t>(all.size()), all.empty() ? 0 : all.back()};
  }
  parameters values{status_, std::int64_t{0}, std::numeric_limits<std::int64_t>::max()};
  append_conditions(values);
  const auto rows = tx.execute({queries::dead_letter::count_letters, std::move(values)});
  namespace columns = queries::dead_letter::count_letters_columns;
  return {rows[0][columns::letters].integer(), rows[0][columns::last_id].integer()};
}

std::string json_ids(std::span<const std::int64_t> ids) {
  json_array all;
  for (const auto id : ids) all.add(id);
  return all.text();
}

}  // namespace dlq

std::vector<dead_letter> dead_letters(database& db, const dead_letter_filter& which, std::size_t at_most,
                                      std::int64_t after) {
  auto tx = db.read();
  std::vector<std::int64_t> ids;
  for (const auto status : dlq::every_status) {
    if (which.status && *which.status != status) continue;
    const auto found = dlq::search(which, status).find(tx, {.after = after}, at_most);
    ids.insert(ids.end(), found.begin(), found.end());
  }
  dlq::sort_and_cut(ids, at_most);
  std::vector<dead_letter> letters;
  if (ids.empty()) return letters;
  auto rows = tx.execute(queries::dead_letter::read_letters, {dlq::json_ids(ids)});
  for (std::size_t i = 0; i < rows.size(); ++i) letters.push_back(dlq::read_letter(rows, i));
  return letters;
}

std::vector<dead_letter_group> dead_letter_groups(database& db) {
  const auto rows = db.read().execute(queries::dead_letter::count_groups);
  namespace columns = queries::dead_letter::count_groups_columns;
  std::vector<dead_letter_group> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto cells = rows[i];
    groups.push_back(
        {cells[columns::consumer].text(), cells[columns::topic].text(), cells[columns::event_type].text(),
         dead_letter_reason_from(cells[columns::reason].text()).value_or(dead_letter_reason::permanent),
         dead_letter_status_from(cells[columns::status].text()).value_or(dead_letter_status::discarded),
         cells[columns::letters].integer(), cells[columns::first_at].time(), cells[columns::last_at].time()});
  }
  return groups;
}

}  // namespace settle::inline v0
