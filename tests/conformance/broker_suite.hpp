// What a broker has to do before Settle may publish to it and consume from it. A driver is done when
//
//   INSTANTIATE_TEST_SUITE_P(mine, broker_conformance, ::testing::Values(my_driver()), broker_name);
//
// passes. Where brokers differ by nature, the suite asks the broker (broker_traits) what it promises.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "settle/driver/broker.hpp"

namespace settle::test {

// One empty broker for one test. Opening it again gives another connection to the same broker, as
// another process would have it.
class broker_storage {
 public:
  virtual ~broker_storage() = default;

  // Topics that are used for the first time get this many partitions.
  virtual std::unique_ptr<broker> open(int partitions) = 0;

  // Lets as much time pass as members need to notice that others have come or gone.
  virtual void pass_a_heartbeat() = 0;

  // Lets so much time pass that a member that was silent meanwhile is taken for dead.
  virtual void outlive_leases() = 0;

  // Lets every call wait for as long as the caller does, until it is told otherwise. False: it cannot.
  virtual bool hang(bool /*hanging*/) { return false; }

  // For how long nothing has to come before a test believes that nothing will. A broker behind a line needs
  // some.
  virtual duration quiet_time() const { return duration::zero(); }
};

// Of the storage that is tested: what drain() and fetch_all() wait for.
inline duration quiet_time = duration::zero();

struct broker_driver {
  std::string name;
  std::function<std::unique_ptr<broker_storage>()> fresh;
  std::function<std::string()> missing = {};  // why the broker cannot be had here, or empty
  // What looking into it can promise.
  bool knows_first_use = true;      // topics come in that order; else by name
  bool orders_between_logs = true;  // a topic is read in the order of its publishes; else each partition is
};

inline std::string broker_name(const ::testing::TestParamInfo<broker_driver>& of) { return of.param.name; }
inline void PrintTo(const broker_driver& driver, std::ostream* out) { *out << driver.name; }

class broker_conformance : public ::testing::TestWithParam<broker_driver> {
 protected:
  void SetUp() override {
    const auto why = GetParam().missing ? GetParam().missing() : std::string();
    if (!why.empty()) GTEST_SKIP() << why;
    storage_ = GetParam().fresh();
    quiet_time = storage_->quiet_time();
  }
  void TearDown() override { quiet_time = duration::zero(); }

  broker_storage& storage() { return *storage_; }
  std::unique_ptr<broker> open(int partitions = 4) { return storage_->open(partitions); }

  // With a group "group" that gets everything from now on: on brokers where a new group gets nothing from
  // before, it has been there once.
  std::unique_ptr<broker> open_with_group(int partitions = 4,
                                          const std::vector<std::string>& topics = {"orders"});

  // Every member fetches often enough for all of them to end with their part.
  void rebalance(const std::vector<subscription*>& members);

 private:
  std::unique_ptr<broker_storage> storage_;
};

// A message numbered `number` of a key; its payload is the number.
message make_message(int number, const std::string& key, const std::string& topic = "orders");

// So many, of so many keys "key-0", "key-1", … in turns.
std::vector<message> numbered(int count, int keys = 1);

// Publishes and expects every message to be confirmed.
void publish_all(broker& to, const std::vector<message>& batch);

// Fetches until `count` messages have come, waiting for them if need be.
std::vector<delivery> collect(subscription& from, std::size_t count);

// Everything that comes now, without waiting for more.
std::vector<delivery> drain(subscription& from);

// What many fetches have brought, in this order.
struct everything_fetched {
  std::vector<std::uint32_t> revoked;
  std::vector<assigned_partition> assigned;
  std::vector<delivery> deliveries;
};
// Fetches until nothing new comes. Expects that each delivery belongs to a session that was assigned before.
everything_fetched fetch_all(subscription& from);

std::vector<delivery_tag> tags_of(const std::vector<delivery>& deliveries);
std::vector<std::string> ids_of(const std::vector<delivery>& deliveries);  // in order
std::set<std::string> id_set(const std::vector<delivery>& deliveries);
std::map<std::string, std::vector<std::string>> payloads_by_key(const std::vector<delivery>& deliveries);

}  // namespace settle::test
