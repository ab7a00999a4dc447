// What a consumer writes, a record and a row of the handler's for each message, with plain SQLite.
#pragma once

#include <span>
#include <string>

#include "raw_sqlite.hpp"
#include "settle/driver/broker.hpp"
#include "workload.hpp"

namespace bench {

inline constexpr std::int64_t batch = 64;  // consumer_options::batch_max
inline constexpr const char* shipments =
    "create table shipments (id integer primary key, order_id text not null)";
inline constexpr const char* insert_shipment = "insert into shipments (order_id) values ($1)";

class raw_consumer {
 public:
  explicit raw_consumer(const std::string& path) : db_(path) {}

  // In the order given: where in the table a record goes depends on it, and with that how many pages a commit
  // writes.
  void insert(std::span<const settle::message> messages) {
    for (std::size_t done = 0; done < messages.size();) {
      db_.begin();
      for (std::int64_t n = 0; n < batch && done < messages.size(); ++n) insert(messages[done++]);
      db_.commit();
    }
  }

  // Until there are no more. What it costs to take messages and to be done with them is the same for
  // everybody.
  void insert_all(settle::subscription& from) {
    constexpr std::size_t at_once = 8 * batch;  // as many as a consumer takes
    for (auto some = from.fetch(at_once).deliveries; !some.empty(); some = from.fetch(at_once).deliveries) {
      for (std::size_t done = 0; done < some.size();) {
        db_.begin();
        for (std::int64_t n = 0; n < batch && done < some.size(); ++n) insert(some[done++].content);
        db_.commit();
      }
    }
  }

 private:
  void insert(const settle::message& m) {
    claim_.bind(1, "warehouse").bind(2, m.id).bind(3, m.topic).bind(4, m.type);
    claim_.bind(5, 1'700'000'000'000'000 + ++inserted_).run();
    insert_.bind(1, m.key).run();
  }

  bench::raw_database db_;
  bench::raw_statement claim_ = db_.prepare(
      "insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at)"
      " values ($1, $2, $3, $4, $5) on conflict do nothing");
  bench::raw_statement insert_ = db_.prepare(insert_shipment);
  std::int64_t inserted_ = 0;
};

}  // namespace bench
