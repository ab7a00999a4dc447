// What several benches do before they measure.
#pragma once

#include <memory>
#include <string>

#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "workload.hpp"

namespace bench {

// A service's database with Settle's tables and one of its own.
inline std::unique_ptr<settle::database> open_service(const std::string& path, const char* create_table) {
  auto db = settle::sqlite::open(path);
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute(create_table);
  tx.commit();
  return db;
}

inline void fill_outbox(settle::database& db, std::int64_t events) {
  constexpr std::int64_t per_commit = 1000;
  for (std::int64_t done = 0; done < events;) {
    auto tx = db.begin();
    for (std::int64_t n = 0; n < per_commit && done < events; ++n, ++done)
      settle::publish(tx, event_of(done));
    tx.commit();
  }
}

inline void drain(settle::service& what) {
  while (what.run_once({})) {
  }
}

}  // namespace bench
