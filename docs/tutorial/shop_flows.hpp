// The tutorial's sagas (3_completed_or_undone.md quotes all of it).
// [snippet: tutorial_sagas]
#pragma once

#include <boost/describe.hpp>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "settle/adapter/boost_json.hpp"
#include "settle/saga.hpp"

using namespace std::chrono_literals;

struct order {
  std::string id;
  std::string item;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, item))

struct pickup_confirmed {
  std::string return_id;
};
BOOST_DESCRIBE_STRUCT(pickup_confirmed, (), (return_id))

template <>
struct settle::codec<order> : settle::json_codec<order> {};

template <>
struct settle::codec<pickup_confirmed> : settle::json_codec<pickup_confirmed> {
  static constexpr std::string_view topic = "carrier";
  static constexpr std::string_view type = "carrier.pickup_confirmed";
  static std::string key(const pickup_confirmed& e) { return e.return_id; }
};

inline void say(const char* what, const std::string& about) {
  std::printf("%s %s\n", what, about.c_str());
  std::fflush(stdout);
}

// Local steps: in the transaction that also notes that they are done.
inline void reserve(settle::transaction& tx, const order& o) {
  tx.execute("insert into reservations (order_id, item) values ($1, $2)", {o.id, o.item});
}
inline void release(settle::transaction& tx, const order& o) {
  tx.execute("delete from reservations where order_id = $1", {o.id});
}
inline void ship(settle::transaction& tx, const order& o) {
  if (o.item == "piano") throw settle::step_refused("no van is large enough for a piano");
  tx.execute("insert into parcels (order_id) values ($1)", {o.id});
}
inline void note_refund(settle::transaction& tx, const std::string& id) {
  tx.execute("insert into refunds (return_id) values ($1)", {id});
}

// Remote steps: a payment service would be called here, with the key.
inline std::string charge(settle::call& call, const order& o) {
  say("charging", o.id + " under the key " + call.key());
  std::this_thread::sleep_for(2s);  // the world is slow, and gives you the time to kill this
  return "charge-" + o.id;
}
inline void pay_back(settle::call&, const order& o, const std::optional<std::string>& charge) {
  say("paying back", charge.value_or("whatever was charged for " + o.id));
}

inline const auto place_order = settle::saga_of<order>(
    "place_order", 1, settle::local("reserve_inventory", reserve).undo(release),
    settle::remote("charge_payment", charge).undo(pay_back), settle::local("create_shipment", ship));

inline const auto create_label =
    settle::local("create_label", [](settle::transaction&, const std::string& id) {
      return "label-" + id;
    }).undo([](settle::transaction&, const std::string&, const std::string& label) {
      say("cancelling", label);
    });
inline const auto refund = settle::local("refund", note_refund);

inline settle::flow<> process_return(settle::saga& saga, const std::string& id) {
  co_await saga.run(create_label, id);
  const auto pickup = co_await saga.wait_for<pickup_confirmed>(id, 120h);
  if (!pickup) co_await saga.undo("not picked up within 5 days");
  co_await saga.run(refund, id);
}
inline const settle::saga_type return_processing("return_processing", 1, process_return,
                                                 {create_label, refund});
// [end]
