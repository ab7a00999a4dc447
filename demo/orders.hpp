// The event of the storm, and the transaction that it is committed in.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>

#include "settle/adapter/boost_json.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "workload.hpp"

namespace storm {

struct order_placed {
  std::string order_id;
  std::string customer;
  std::int64_t total_cents = 0;
};

void tag_invoke(boost::json::value_from_tag, boost::json::value& to, const order_placed& e);
order_placed tag_invoke(boost::json::value_to_tag<order_placed>, const boost::json::value& from);

// In a database of its own kind each: the tables of those who commit orders, and of those who ship them.
void create_orders(settle::database& db);
void create_shipments(settle::database& db);

// One transaction: the order, its event, and the note for the checker.
void place(settle::database& db, const order& what);

// Ships what is ordered, and notes it for the checker.
void ship_orders(settle::consumer& warehouse);

}  // namespace storm

template <>
struct settle::codec<storm::order_placed> : settle::json_codec<storm::order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static constexpr std::string_view aggregate_type = "customer";
  static std::string key(const storm::order_placed& e) { return e.customer; }
};
