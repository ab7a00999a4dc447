#include "support/order_world.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <stdexcept>
#include <thread>

#include "base/zoo.hpp"
#include "compose/service_database.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "sqlite/inspection.hpp"

namespace settle {

std::string codec<test::order_placed>::encode(const test::order_placed& e) {
  return fmt::format("{}|{}|{}", e.order_id, e.customer, e.total_cents);
}

test::order_placed codec<test::order_placed>::decode(std::string_view payload) {
  const auto first = payload.find('|');
  const auto second = payload.find('|', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos)
    throw std::invalid_argument("an order has three parts");
  return {std::string(payload.substr(0, first)), std::string(payload.substr(first + 1, second - first - 1)),
          std::stoll(std::string(payload.substr(second + 1)))};
}

namespace test {
namespace {

constexpr auto schema =
    "create table if not exists orders (id text primary key, customer text not null, total_cents integer not "
    "null)";
constexpr auto warehouse_schema =
    "create table if not exists shipments (id integer primary key, order_id text not null)";
constexpr auto warehouse_schema_on_a_server =
    "create table if not exists shipments (id bigint generated always as identity primary key, order_id text "
    "not "
    "null)";

void create(database& db, const char* schema_text) {
  migrate(db);
  auto tx = db.begin();
  tx.execute(schema_text);
  tx.commit();
}

}  // namespace

std::string order_name(int number) { return fmt::format("order-{:05}", number); }
std::string customer_of(int number) { return fmt::format("customer-{}", number % 3); }

order_world::order_world(const temp_dir& in, const world_options& options)
    : options_(options), broker_path_(in.file("broker.db")) {
  time_.advance(std::chrono::hours(options.hours_later));
  if (!options.real_time) env_.time = &time_;
  env_.counters = &counters_;
  env_.log = &log_;
  // Set up without faults: they belong to the scenario, not to its preparation.
  orders_ = open_service(in, "orders.db", options.orders);
  warehouse_ = open_service(in, "warehouse.db", options.warehouse);
  create(*orders_, schema);
  create(*warehouse_, options.warehouse.empty() ? warehouse_schema : warehouse_schema_on_a_server);
  if (!options.broker) sqlite::open_broker(broker_path_, {.env = env_});
  env_.faults = options.faults;
  orders_ = open_service(in, "orders.db", options.orders);
  warehouse_ = open_service(in, "warehouse.db", options.warehouse);
  broker_ = options.broker ? options.broker(env_)
                           : sqlite::open_broker(broker_path_, {.env = env_,
                                                                .busy_timeout = options.busy_timeout,
                                                                .partitions = 4,
                                                                .lease_ttl = options.lease_ttl});
  relay_ = make_relay();
  consumer_ = make_consumer({.name = "warehouse"});
}

std::unique_ptr<database> order_world::open_service(const temp_dir& in, const char* file,
                                                    const std::string& conninfo) const {
  if (conninfo.empty())
    return sqlite::open(in.file(file), {.env = env_, .busy_timeout = options_.busy_timeout});
  return compose::open_database(conninfo, {.env = env_});
}

std::unique_ptr<settle::relay> order_world::make_relay() {
  return std::make_unique<settle::relay>(*orders_, broker_->publishing(),
                                         relay_options{.lease_ttl = options_.lease_ttl});
}

std::unique_ptr<settle::consumer> order_world::make_consumer(const consumer_options& options) {
  auto made = std::make_unique<settle::consumer>(*warehouse_, *broker_, options);
  made->on<order_placed>([this, name = options.name](const order_placed& e, transaction& tx) {
    tx.execute("insert into shipments (order_id) values ($1)", {e.order_id});
    note_applied(tx, name, {.topic = "orders", .key = e.customer, .subject = e.order_id});
    if (killing.contains(e.order_id)) ::raise(SIGKILL);
    if (outage) throw handler_failed(failure_class::outage, "the warehouse is closed");
    if (failing.contains(e.order_id)) throw std::runtime_error("no room for " + e.order_id);
  });
  return made;
}

void order_world::place(int number) {
  const order_placed order{order_name(number), customer_of(number), 100 * number};
  const auto id = orders_->env().ids->next_as<event_id>();
  auto tx = orders_->begin();
  try {
    tx.execute("insert into orders (id, customer, total_cents) values ($1, $2, $3)",
               {order.order_id, order.customer, order.total_cents});
  } catch (const error& e) {
    if (e.code() == errc::constraint_violated) return;  // an earlier attempt had committed
    throw;
  }
  note_committed(tx, {.topic = "orders", .key = order.customer, .subject = order.order_id, .event = id});
  if (zoo::has(zoo::bug::publish_after_commit)) {
    tx.commit("producer.commit");
    auto later = orders_->begin();
    publish(later, order, {.id = id});
    later.commit("producer.publish");
    return;
  }
  publish(tx, order, {.id = id});
  tx.commit("producer.commit");
}

void order_world::drain() {
  until_quiet([&] {
    const bool published = relay_->run_once();
    return consumer_->run_once() || published;
  });
}

void order_world::until_quiet(const std::function<bool()>& step) const {
  using steady = std::chrono::steady_clock;
  step();  // which may take its time to connect
  auto quiet_since = steady::now();
  while (true) {
    if (step())
      quiet_since = steady::now();
    else if (const auto quiet = steady::now() - quiet_since;
             quiet >= options_.quiet_time && (quiet >= options_.patience || all_shipped()))
      return;
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

bool order_world::all_shipped() const {
  const auto count = [](database& in, const char* from) { return in.read().execute(from)[0][0].integer(); };
  return count(*warehouse_, "select count(*) from shipments") >=
         count(*orders_, "select count(*) from orders");
}

database& order_world::broker_file() {
  if (!broker_file_) broker_file_ = sqlite::open(broker_path_, {.env = env_});
  return *broker_file_;
}

verify_report order_world::verify() {
  // Without the broker's own records, what is not applied is pending as long as it is in the outbox.
  if (options_.broker) return settle::verify({.services = {orders_.get(), warehouse_.get()}});
  sqlite::embedded_inspection at_broker(broker_file());
  return settle::verify({.services = {orders_.get(), warehouse_.get()}, .broker = &at_broker});
}

}  // namespace test
}  // namespace settle
