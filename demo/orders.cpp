#include "orders.hpp"

#include "settle/publish.hpp"
#include "settle/verify.hpp"

namespace storm {
namespace {

void create(settle::database& db, const char* schema) {
  settle::migrate(db);
  auto tx = db.begin();
  tx.execute(schema);
  tx.commit();
}

}  // namespace

void tag_invoke(boost::json::value_from_tag, boost::json::value& to, const order_placed& e) {
  to = {{"order_id", e.order_id}, {"customer", e.customer}, {"total_cents", e.total_cents}};
}

order_placed tag_invoke(boost::json::value_to_tag<order_placed>, const boost::json::value& from) {
  return {boost::json::value_to<std::string>(from.at("order_id")),
          boost::json::value_to<std::string>(from.at("customer")),
          from.at("total_cents").to_number<std::int64_t>()};
}

void create_orders(settle::database& db) {
  create(db,
         "create table orders (id text primary key, customer text not null, total_cents bigint not null)");
}

// Without a key: a shipment that is written twice is to be found by the checker, not refused here.
void create_shipments(settle::database& db) {
  create(db, "create table shipments (order_id text not null, total_cents bigint not null)");
}

void place(settle::database& db, const order& what) {
  auto tx = db.begin();
  tx.execute("insert into orders (id, customer, total_cents) values ($1, $2, $3)",
             {what.id, what.customer, what.total_cents});
  const auto event = settle::publish(tx, order_placed{what.id, what.customer, what.total_cents});
  settle::note_committed(tx, {.topic = "orders", .key = what.customer, .subject = what.id, .event = event});
  tx.commit();
}

void ship_orders(settle::consumer& warehouse) {
  warehouse.on<order_placed>([](const order_placed& e, settle::transaction& tx) {
    tx.execute("insert into shipments (order_id, total_cents) values ($1, $2)", {e.order_id, e.total_cents});
    settle::note_applied(tx, "warehouse", {.topic = "orders", .key = e.customer, .subject = e.order_id});
  });
}

}  // namespace storm
