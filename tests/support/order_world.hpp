// A small world for scenarios: an order service, a relay, a broker (as a rule the embedded one) and a
// warehouse that applies each order once. It writes the effect log, so that the checker can judge what
// happened.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "settle/broker.hpp"
#include "settle/codec.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/metrics.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "settle/verify.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

struct order_placed {
  std::string order_id;
  std::string customer;
  std::int64_t total_cents = 0;
};

}  // namespace settle::test

template <>
struct settle::codec<settle::test::order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static constexpr std::string_view aggregate_type = "customer";
  static std::string key(const test::order_placed& e) { return e.customer; }
  static std::string encode(const test::order_placed& e);
  static test::order_placed decode(std::string_view payload);
};

namespace settle::test {

struct world_options {
  fault_points* faults = nullptr;
  int hours_later = 0;  // a world that is opened after a crash: the dead owners' leases have ended
  duration lease_ttl = std::chrono::seconds(10);
  bool real_time = false;                            // for worlds that run by themselves, on threads
  duration busy_timeout = std::chrono::seconds(10);  // of every file
  // Connection strings of two databases on PostgreSQL. Empty: SQLite files in the folder.
  std::string orders = {};
  std::string warehouse = {};
  // Another broker than the embedded one; it gets the environment with its fault points.
  std::function<std::unique_ptr<settle::broker>(const environment&)> broker = {};
  // Of a broker behind a line: for how long nothing has to come before drain() believes that nothing will.
  duration quiet_time = duration::zero();
  // The same while not every order has been shipped: a group whose member was killed goes on after a while.
  duration patience = duration::zero();
};

class order_world {
 public:
  order_world(const temp_dir& in, const world_options& options = {});

  // Commits an order and its event. Repeating it is safe: the order's own key answers "did it commit?".
  void place(int number);

  // Runs relay and consumer until neither has anything to do.
  void drain();
  // Repeats a step until it has done nothing, and, with a broker behind a line, nothing for its quiet time,
  // or for its patience.
  void until_quiet(const std::function<bool()>& step) const;

  // More of them on the same files. The consumer's handler is the warehouse's.
  std::unique_ptr<settle::consumer> make_consumer(const consumer_options& options);
  std::unique_ptr<settle::relay> make_relay();
  verify_report verify();

  database& orders() { return *orders_; }
  database& warehouse() { return *warehouse_; }
  database& broker_file();  // of the embedded broker
  settle::broker& broker() { return *broker_; }
  settle::relay& relay() { return *relay_; }
  settle::consumer& consumer() { return *consumer_; }
  testing::manual_time& time() { return time_; }
  metrics& counters() { return counters_; }
  quiet_log& log() { return log_; }

  // Orders whose handler throws, until they are taken out.
  std::set<std::string> failing;
  std::atomic<bool> outage = false;  // of something that every handler needs
  std::set<std::string> killing;     // orders over which the handler's process dies

 private:
  bool all_shipped() const;
  std::unique_ptr<database> open_service(const temp_dir& in, const char* file,
                                         const std::string& conninfo) const;

  testing::manual_time time_;
  metrics counters_;
  quiet_log log_;
  environment env_;
  world_options options_;
  std::string broker_path_;
  std::unique_ptr<database> orders_;
  std::unique_ptr<database> warehouse_;
  std::unique_ptr<database> broker_file_;
  std::unique_ptr<settle::broker> broker_;
  std::unique_ptr<settle::relay> relay_;
  std::unique_ptr<settle::consumer> consumer_;
};

std::string order_name(int number);
std::string customer_of(int number);

}  // namespace settle::test
