#include "inspect/service.hpp"

#include <map>

#include "queries/inspect.hpp"
#include "settle/driver/database.hpp"

namespace settle::inspect {
namespace {

// As the relay sees it: see errc::cluster_changed.
bool is_another_cluster(transaction& tx) {
  namespace columns = queries::inspect::read_cluster_columns;
  const auto here = identity_of(tx);
  const auto rows = tx.execute(queries::inspect::read_cluster);
  const auto known = rows[0];
  if (!here || known[columns::system_identifier].is_null()) return false;
  return here->system_identifier != known[columns::system_identifier].integer() ||
         here->timeline != known[columns::timeline].integer();
}

}  // namespace

std::vector<consumer_state> read_consumers(transaction& tx) {
  std::map<std::string, consumer_state> all;
  const auto records = tx.execute(queries::inspect::count_dedup_records);
  for (std::size_t i = 0; i < records.size(); ++i) {
    namespace columns = queries::inspect::count_dedup_records_columns;
    all[records[i][columns::consumer].text()].dedup_records = records[i][columns::records].integer();
  }
  const auto waiting = tx.execute(queries::inspect::count_parked_and_dead);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    namespace columns = queries::inspect::count_parked_and_dead_columns;
    auto& one = all[waiting[i][columns::consumer].text()];
    one.parked = waiting[i][columns::parked].integer();
    one.dead_letters = waiting[i][columns::dead].integer();
  }
  std::vector<consumer_state> list;
  for (auto& [name, one] : all) {
    one.consumer = name;
    list.push_back(std::move(one));
  }
  return list;
}

service_state read_service(database& service) {
  auto tx = service.read();
  service_state state;
  state.name = service.name();
  state.speaks = service.speaks();
  state.cluster_changed = is_another_cluster(tx);
  const auto numbers = read_numbers(tx);
  state.backlog = read_backlog(tx, numbers.highest);
  state.oldest_pending_age = state.backlog.oldest_age(service.env().now());
  if (numbers.skipped)
    state.published = numbers.highest - *numbers.skipped - state.backlog.pending - state.backlog.delayed -
                      state.backlog.failed;
  state.blocked = read_blocked(tx, state.backlog);
  state.relaying = read_relays(tx);
  state.consumers = read_consumers(tx);
  state.sagas = count_open_sagas(tx);
  return state;
}

bool is_service_database(database& db) {
  return db.read()
             .execute(queries::inspect::find_outbox)[0][queries::inspect::find_outbox_columns::found]
             .integer() != 0;
}

std::string read_database_id(database& db) {
  return db.read()
      .execute(queries::inspect::read_database_id)[0][queries::inspect::read_database_id_columns::database_id]
      .text();
}

}  // namespace settle::inspect
