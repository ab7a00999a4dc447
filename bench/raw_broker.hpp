// Batched inserts of messages into the embedded broker's table with plain SQLite.
#pragma once

#include <string>

#include "raw_sqlite.hpp"
#include "settle/sqlite.hpp"
#include "workload.hpp"

namespace bench {

class raw_broker {
 public:
  static constexpr std::int64_t batch = 500;  // relay_options::batch_max

  explicit raw_broker(const std::string& path, std::string payload = bench::payload())
      : db_(with_schema(path)), payload_(std::move(payload)) {
    db_.run("insert into broker_topics (name, partitions) values ('orders', 8)");
  }

  // What a row holds is made here as well, except the event's id.
  void insert(std::int64_t messages) {
    for (std::int64_t done = 0; done < messages;) {
      db_.begin();
      for (std::int64_t n = 0; n < batch && done < messages; ++n, ++done) insert_one();
      db_.commit();
    }
  }

 private:
  static const std::string& with_schema(const std::string& path) {
    settle::sqlite::open_broker(path).reset();
    return path;
  }

  void insert_one() {
    ++number_;
    const auto key = bench::key_of(number_);
    const auto extensions = R"({"sequence":")" + std::to_string(number_) + "\"}";
    insert_.bind(1, 1)
        .bind(2, number_ % 8)
        .bind(3, "01890000-0000-7000-8000-000000000000")
        .bind(4, "settle:0123456789abcdef0123456789abcdef")
        .bind(5, bench::type)
        .bind(6, key)
        .bind(7, key)
        .bind(8, "application/json")
        .bind(9, 1'700'000'000'000'000 + number_)
        .bind(10, extensions)
        .bind_bytes(11, payload_)
        .run();
  }

  raw_database db_;
  std::string payload_;
  raw_statement insert_ = db_.prepare(
      "insert into broker_messages (topic, partition, event_id, source, event_type, key, subject, "
      "content_type,"
      " time, extensions, payload) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
  std::int64_t number_ = 0;
};

}  // namespace bench
