// Where a service's database stands: its outbox, its relays and its consumers, read in one snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/outbox.hpp"
#include "inspect/sagas.hpp"
#include "settle/database.hpp"

namespace settle::inspect {

struct consumer_state {
  std::string consumer;
  std::int64_t dedup_records = 0;
  std::int64_t parked = 0;        // messages that wait for another try, or behind one
  std::int64_t dead_letters = 0;  // not replayed yet
};

std::vector<consumer_state> read_consumers(transaction& tx);

struct service_state {
  std::string name;  // a file, or the server's
  dialect speaks = dialect::sqlite;
  bool cluster_changed = false;  // then nobody can tell what is pending
  outbox_backlog backlog;
  // None on a server, which does not count them: numbers that were rolled back are gone.
  std::optional<std::int64_t> published;
  std::optional<duration> oldest_pending_age;
  std::vector<blocked_share> blocked;
  relays relaying;
  std::vector<consumer_state> consumers;
  std::vector<open_sagas> sagas;  // that have not ended
};

service_state read_service(database& service);

// Whether the database has an outbox, so is a service's. On a server also a role may ask that may only
// publish.
bool is_service_database(database& db);

// Names the database, whatever it is called: two connection strings with one id lead to one database.
std::string read_database_id(database& db);

}  // namespace settle::inspect
