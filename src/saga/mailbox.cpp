#include "saga/mailbox.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/parts.hpp"
#include "queries/saga.hpp"
#include "saga/seams.hpp"
#include "saga/store.hpp"

namespace settle::sagas {
namespace {

std::int64_t lock_number(const std::string& host, const event_key& of) {
  std::string parts = "saga";
  append_part(parts, host);
  append_part(parts, of.first);
  append_part(parts, of.second);
  return static_cast<std::int64_t>(stable_hash(parts));
}

std::string pairs_list(const std::set<event_key>& keys) {
  json_array list;
  for (const auto& [type, key] : keys) list.add_all({type, key});
  return list.text();
}

}  // namespace

void mailbox::lock(transaction& tx, const std::set<event_key>& keys) const {
  if (keys.empty()) return;
  std::set<std::int64_t> numbers;
  for (const auto& one : keys) numbers.insert(lock_number(host_, one));
  const std::vector<std::int64_t> sorted(numbers.begin(), numbers.end());
  lock_keys(tx, json_list(sorted));
}

std::int64_t mailbox::deliver(transaction& tx, std::span<const arrived_event> events) const {
  return deliver(tx, events, false);
}

std::int64_t mailbox::deliver_wanted(transaction& tx, std::span<const arrived_event> events) const {
  return deliver(tx, events, true);
}

std::int64_t mailbox::deliver(transaction& tx, std::span<const arrived_event> events, bool if_wanted) const {
  std::set<event_key> keys;
  for (const auto& one : events) keys.insert({one.type, one.key});
  if (keys.empty()) return 0;
  lock(tx, keys);
  if (if_wanted) {
    namespace columns = queries::saga::find_waiting_columns;
    const auto wanted = tx.execute(queries::saga::find_waiting, {host_, pairs_list(keys)});
    keys.clear();
    for (std::size_t i = 0; i < wanted.size(); ++i)
      keys.insert({wanted[i][columns::type].text(), wanted[i][columns::key].text()});
  }
  std::vector<parameters> rows;
  const auto now = tx.env().now();
  for (const auto& one : events)
    if (keys.contains({one.type, one.key}))
      rows.push_back({host_, one.type, one.key, one.id, blob{one.payload}, now});
  const auto added = tx.execute_many(queries::saga::add_mail, rows);
  pair(tx, keys, {});
  return std::ranges::count(added, 1);
}

std::map<wait_id, std::string> mailbox::add(transaction& tx, std::span<const new_wait> waits,
                                            const std::set<std::int64_t>& ours) const {
  std::set<event_key> keys;
  std::vector<parameters> rows;
  for (const auto& one : waits) {
    keys.insert(one.of);
    rows.push_back({one.id.first, one.id.second, host_, one.of.first, one.of.second});
  }
  tx.execute_many(queries::saga::add_wait, rows);
  return pair(tx, keys, ours);
}

std::map<wait_id, std::string> mailbox::pair(transaction& tx, const std::set<event_key>& keys,
                                             const std::set<std::int64_t>& ours) const {
  std::map<wait_id, std::string> found;
  if (keys.empty()) return found;
  namespace columns = queries::saga::find_pairs_columns;
  const auto rows = find_pairs(tx, host_, pairs_list(keys));
  std::vector<parameters> given, ended, woken;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto no = rows[i][columns::no].integer();
    const auto n = rows[i][columns::n].integer();
    given.push_back({rows[i][columns::id].integer(), no, n});
    ended.push_back({no, n});
    if (ours.contains(no))
      found[{no, static_cast<int>(n)}] = rows[i][columns::payload].bytes();
    else
      woken.push_back({no});
  }
  const std::vector<repeated> all = {{queries::saga::give_mail, given},
                                     {queries::saga::drop_wait, ended},
                                     {queries::saga::wake_saga, woken}};
  if (!given.empty()) tx.execute_all(all);
  if (!woken.empty()) tx.wake_on_commit();
  return found;
}

std::map<wait_id, std::string> mailbox::read(transaction& tx, std::span<const std::int64_t> sagas) {
  std::map<wait_id, std::string> found;
  if (sagas.empty()) return found;
  namespace columns = queries::saga::read_mail_columns;
  const auto rows = tx.execute(queries::saga::read_mail, {json_list(sagas)});
  for (std::size_t i = 0; i < rows.size(); ++i)
    found[{rows[i][columns::no].integer(), static_cast<int>(rows[i][columns::n].integer())}] =
        rows[i][columns::payload].bytes();
  return found;
}

bool mailbox::end_wait(transaction& tx, wait_id which) {
  return tx.execute(queries::saga::drop_wait, {which.first, which.second}).affected() == 1;
}

void mailbox::give_back(transaction& tx, std::span<const new_wait> waits) const {
  std::set<event_key> keys;
  for (const auto& one : waits) {
    keys.insert(one.of);
    if (!end_wait(tx, one.id)) tx.execute(queries::saga::take_mail_back, {one.id.first, one.id.second});
  }
  pair(tx, keys, {});
}

std::int64_t sweep_mail(database& db, timestamp before, std::int64_t at_most) {
  auto tx = db.begin();
  const auto found = tx.execute(queries::saga::find_old_mail, {before, at_most});
  std::vector<std::int64_t> gone;
  for (std::size_t i = 0; i < found.size(); ++i)
    gone.push_back(found[i][queries::saga::find_old_mail_columns::id].integer());
  if (gone.empty()) return 0;
  tx.post(queries::saga::drop_old_mail, {json_list(gone)});
  tx.commit("saga.sweep_mail");
  return static_cast<std::int64_t>(gone.size());
}

}  // namespace settle::sagas
