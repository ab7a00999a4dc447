// A service and a warehouse on PostgreSQL with a broker between them, relay and consumer in the producer's
// process: how long it takes from the return of commit() to the first line of the handler.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "latencies.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/consume.hpp"
#include "settle/postgres.hpp"

namespace bench {

struct turns_of_latency {
  std::vector<double> ours;
  std::vector<double> raw;
};

class latency_shop {
 public:
  latency_shop(const std::string& server, const std::string& name, std::unique_ptr<settle::broker> between)
      : service_(server, name + "_service"),
        warehouse_(server, name + "_warehouse"),
        broker_(std::move(between)) {
    raw_connection(warehouse_.conninfo())
        .run("create table shipments (id bigint generated always as identity primary key, order_id text)");
    // The handler's first act is to note the time under the event's number, which is its key.
    consumer_.on(topic, type, [this](const settle::message& m, settle::transaction& tx) {
      arrived_[static_cast<std::size_t>(std::stoll(m.key))].store(now_ns());
      tx.execute("insert into shipments (order_id) values ($1)", {m.key});
    });
  }

  std::string service() const { return service_.conninfo(); }
  settle::database& own_database() { return *outbox_; }
  std::unique_ptr<settle::database> another_database() const { return settle::postgres::open(service()); }

  // In turns with `raw`, which gives milliseconds. The pauses differ, so that they do not fall in step with
  // any timer; the first events wait for leases and are not counted.
  turns_of_latency emit(settle::database& from, std::size_t count, const std::function<double()>& raw) {
    using namespace std::chrono_literals;
    constexpr std::size_t not_counted = 10;
    const settle::background relaying(relay_);
    const settle::background consuming(consumer_);
    turns_of_latency took;
    for (std::size_t n = 1; n <= count + not_counted; ++n) {
      const auto ours = emit_one(from, n);
      std::this_thread::sleep_for(2ms + 1ms * (n * 7 % 11));
      const auto bare = raw();
      std::this_thread::sleep_for(2ms);
      if (n <= not_counted) continue;
      took.ours.push_back(ours);
      took.raw.push_back(bare);
    }
    return took;
  }

 private:
  static constexpr std::size_t samples_max = 2000;

  double emit_one(settle::database& from, std::size_t number) {
    auto tx = from.begin();
    auto event = event_of(0);
    event.key = std::to_string(number);
    settle::publish(tx, event);
    tx.commit();
    const auto committed = now_ns();
    await(arrived_[number]);
    return std::max(static_cast<double>(arrived_[number].load() - committed) / 1e6, 0.0);
  }

  scratch service_;
  scratch warehouse_;
  std::array<std::atomic<std::int64_t>, samples_max> arrived_{};
  std::unique_ptr<settle::broker> broker_;
  std::unique_ptr<settle::database> outbox_ = settle::postgres::open(service_.conninfo());
  std::unique_ptr<settle::database> stock_ = settle::postgres::open(warehouse_.conninfo());
  settle::relay relay_{*outbox_, broker_->publishing()};
  settle::consumer consumer_{*stock_, *broker_, {.name = "warehouse"}};
};

}  // namespace bench
