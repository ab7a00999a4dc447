// What a consumer writes, a record and a row of the handler's for each message, with plain SQLite.
#pragma once

#include <string>

#include "raw_sqlite.hpp"
#include "settle/ids.hpp"
#include "workload.hpp"

namespace bench {

inline constexpr std::int64_t batch = 64;  // consumer_options::batch_max
inline constexpr const char* shipments =
    "create table shipments (id integer primary key, order_id text not null)";
inline constexpr const char* insert_shipment = "insert into shipments (order_id) values ($1)";

class raw_consumer {
 public:
  explicit raw_consumer(const std::string& path) : db_(path) {}

  void insert(std::int64_t messages) {
    for (std::int64_t done = 0; done < messages;) {
      db_.begin();
      for (std::int64_t n = 0; n < batch && done < messages; ++n, ++done) {
        const auto id = settle::system_ids().next_as<settle::event_id>().text();
        claim_.bind(1, "warehouse").bind(2, id).bind(3, bench::topic).bind(4, bench::type);
        claim_.bind(5, 1'700'000'000'000'000 + done).run();
        const auto key = bench::key_of(done);
        insert_.bind(1, key).run();
      }
      db_.commit();
    }
  }

 private:
  bench::raw_database db_;
  bench::raw_statement claim_ = db_.prepare(
      "insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at)"
      " values ($1, $2, $3, $4, $5) on conflict do nothing");
  bench::raw_statement insert_ = db_.prepare(insert_shipment);
};

}  // namespace bench
