// What the benches of consumers on a server as broker share: ours, and the same two rows per message by hand.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "consuming.hpp"
#include "harness.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace bench {

inline constexpr std::int64_t consumer_batch = 64;  // consumer_options::batch_max
inline constexpr settle::query insert_shipment{"insert_shipment", "",
                                               "insert into shipments (order_id) values ($1)"};

inline void create_shipments(const std::string& conninfo) {
  raw_connection(conninfo).run(
      "create table shipments (id bigint generated always as identity primary key, order_id text not null)");
}

inline std::vector<settle::message> messages_for(std::int64_t count) {
  std::vector<settle::message> all;
  for (std::int64_t n = 0; n < count; ++n) all.push_back(message_of(n));
  return all;
}

// A consumer on some broker, whose messages are waiting when it is measured.
class our_consumer {
 public:
  our_consumer(const std::string& conninfo, settle::broker& from, const std::string& name)
      : db_(settle::postgres::open(conninfo, {.env = without_log()})), consumer_(*db_, from, {.name = name}) {
    consumer_.on(topic, type, [](const settle::message& m, settle::transaction& tx) {
      tx.post(insert_shipment, {m.key});
    });
    drain(consumer_);
  }
  ~our_consumer() { consumer_.leave(); }
  our_consumer(const our_consumer&) = delete;
  our_consumer& operator=(const our_consumer&) = delete;

  slice measure(std::int64_t messages) {
    return bench::measure(messages, [&] { run_until_ended(consumer_, messages); });
  }

 private:
  std::unique_ptr<settle::database> db_;
  settle::consumer consumer_;
};

// `Line` gives messages with id and key by next(), and acknowledges by done() all that it has given.
template <class Line>
class consumer_by_hand {
 public:
  template <class... Arguments>
  explicit consumer_by_hand(const std::string& conninfo, Arguments&&... of)
      : conn_(conninfo), line_(std::forward<Arguments>(of)...) {
    conn_.prepare(
        "claim",
        "insert into settle.processed_events (consumer, message_id, topic, event_type, processed_at)"
        " values ($1, $2, $3, $4, $5) on conflict do nothing");
    conn_.prepare("insert", "insert into shipments (order_id) values ($1)");
  }

  slice measure(std::int64_t messages) {
    return bench::measure(messages, [&] {
      for (std::int64_t done = 0; done < messages;) done += run(std::min(consumer_batch, messages - done));
    });
  }

 private:
  std::int64_t run(std::int64_t count) {
    std::vector<raw_connection::call> calls;
    for (std::int64_t n = 0; n < count; ++n) {
      const auto one = line_.next();
      calls.push_back({"claim", {"raw", one.id, topic, type, "1700000000000000"}});
      calls.push_back({"insert", {one.key}});
    }
    conn_.run_pipelined(calls);
    line_.done();
    return count;
  }

  raw_connection conn_;
  Line line_;
};

}  // namespace bench
