#include "roles.hpp"

#include <signal.h>

#include <boost/json.hpp>
#include <memory>
#include <string>

#include "settle/adapter/boost_json.hpp"
#include "settle/consume.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "settle/verify.hpp"

namespace storm {

struct order_placed {
  std::string order_id;
  std::string customer;
  std::int64_t total_cents = 0;
};

void tag_invoke(boost::json::value_from_tag, boost::json::value& to, const order_placed& e) {
  to = {{"order_id", e.order_id}, {"customer", e.customer}, {"total_cents", e.total_cents}};
}

order_placed tag_invoke(boost::json::value_to_tag<order_placed>, const boost::json::value& from) {
  return {boost::json::value_to<std::string>(from.at("order_id")),
          boost::json::value_to<std::string>(from.at("customer")),
          from.at("total_cents").to_number<std::int64_t>()};
}

}  // namespace storm

template <>
struct settle::codec<storm::order_placed> : settle::json_codec<storm::order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static constexpr std::string_view aggregate_type = "customer";
  static std::string key(const storm::order_placed& e) { return e.customer; }
};

namespace storm {
namespace {

constexpr auto lease = std::chrono::seconds(1);  // short, so that take-overs happen while you watch

std::unique_ptr<settle::broker> open_broker(const settings& of) {
  return settle::sqlite::open_broker(of.data + "/broker.db", {.partitions = 4, .lease_ttl = lease});
}

void create(const std::string& path, const char* schema) {
  const auto db = settle::sqlite::open(path);
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute(schema);
  tx.commit();
}

// SIGTERM is blocked before any thread starts (by whoever started us, too), so that only the waiting below
// receives it.
class termination {
 public:
  termination() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void wait() const {
    int received = 0;
    sigwait(&signals_, &received);
  }

 private:
  sigset_t signals_{};
};

// Delivers some messages twice, as every broker may.
class duplicating_publisher final : public settle::publisher {
 public:
  duplicating_publisher(settle::publisher& to, std::uint64_t seed) : to_(to), random_(seed) {}

  std::vector<settle::publish_result> publish(std::span<const settle::message> batch,
                                              const settle::call_limits& limits) override {
    auto results = to_.publish(batch, limits);
    std::vector<settle::message> again;
    for (const auto& m : batch)
      if (random_.below(10) == 0) again.push_back(m);
    if (!again.empty()) to_.publish(again, limits);
    return results;
  }

 private:
  settle::publisher& to_;
  settle::testing::seeded_random random_;
};

// One transaction: the order, its event, and the note for the checker.
void place(settle::database& db, const order& what) {
  auto tx = db.begin();
  tx.execute("insert into orders (id, customer, total_cents) values ($1, $2, $3)",
             {what.id, what.customer, what.total_cents});
  const auto event = settle::publish(tx, order_placed{what.id, what.customer, what.total_cents});
  settle::note_committed(tx, {.topic = "orders", .key = what.customer, .subject = what.id, .event = event});
  tx.commit();
}

}  // namespace

void prepare(const settings& of) {
  create(of.data + "/orders.db",
         "create table orders (id text primary key, customer text not null, total_cents integer not null)");
  create(of.data + "/warehouse.db",
         "create table shipments (id integer primary key, order_id text not null, total_cents integer not "
         "null)");
  open_broker(of);
}

void run_producer(const settings& of, int index) {
  const auto db = settle::sqlite::open(of.data + "/orders.db");
  for (int number = index; number < of.orders; number += producers) {
    const auto what = make_order(of, number);
    while (true) {
      try {
        place(*db, what);
        break;
      } catch (const settle::error& e) {
        if (e.code() == settle::errc::constraint_violated) break;  // committed before we were killed
        if (!e.retryable()) throw;
      }
    }
  }
}

void run_relay(const settings& of, int index) {
  const termination asked;
  const auto db = settle::sqlite::open(of.data + "/orders.db");
  const auto broker = open_broker(of);
  duplicating_publisher destination(broker->publishing(), of.seed + static_cast<std::uint64_t>(index));
  settle::relay relay(*db, destination, {.source = "/orders", .batch_max = 100, .lease_ttl = lease});
  settle::background loop(relay);
  asked.wait();
}

void run_consumer(const settings& of, int) {
  const termination asked;
  const auto db = settle::sqlite::open(of.data + "/warehouse.db");
  const auto broker = open_broker(of);
  settle::consumer warehouse(*db, *broker, {.name = "warehouse"});
  warehouse.on<order_placed>([](const order_placed& e, settle::transaction& tx) {
    tx.execute("insert into shipments (order_id, total_cents) values ($1, $2)", {e.order_id, e.total_cents});
    settle::note_applied(tx, "warehouse", {.topic = "orders", .key = e.customer, .subject = e.order_id});
  });
  settle::background loop(warehouse);
  asked.wait();
}

}  // namespace storm
