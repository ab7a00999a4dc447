// The sagas that docs/guides/sagas.md is about: an order that is placed, and a return that is processed.
// sagas.cpp runs them, saga_test.cpp tests them.
#pragma once

#include <boost/describe.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "settle/adapter/boost_json.hpp"
#include "settle/saga.hpp"

namespace shop {

using namespace std::chrono_literals;

// Somebody else's payment service: of one key it remembers what it has done.
struct payment_service {
  bool is_reachable = true;
  std::map<std::string, std::string> done;  // by key

  std::string charge(const std::string& key, std::int64_t cents) {
    if (!is_reachable) throw settle::call_not_made("no connection to the payment service");
    return done.try_emplace(key, "charge of " + std::to_string(cents)).first->second;
  }
  void refund(const std::string& key, const std::string& customer, const std::optional<std::string>& charge) {
    done.try_emplace(key, "refund of " + charge.value_or("whatever was charged for " + customer));
  }
};
inline payment_service payments;

// [snippet: saga_input]
struct order {
  std::string id;
  std::string item;
  std::int64_t cents = 0;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, item, cents))
// [end]

}  // namespace shop

// [snippet: saga_codec]
template <>
struct settle::codec<shop::order> : settle::json_codec<shop::order> {};
// [end]

namespace shop {

// [snippet: saga_local_step]
inline void reserve(settle::transaction& tx, const order& o) {
  if (tx.execute("update stock set pieces = pieces - 1 where item = $1 and pieces > 0", {o.item})
          .affected() == 0)
    throw settle::step_refused("there is no " + o.item + " left");
}
inline void release(settle::transaction& tx, const order& o) {
  tx.execute("update stock set pieces = pieces + 1 where item = $1", {o.item});
}
// [end]

// [snippet: saga_remote_step]
inline std::string charge(settle::call& call, const order& o) {
  return payments.charge(call.key(), o.cents);  // the key goes along: the same one for every attempt
}
inline void refund(settle::call& call, const order&, const std::optional<std::string>& charge) {
  // Without a charge nobody knows whether there was one; it may even arrive after this.
  payments.refund(call.key(), call.saga().text(), charge);
}
// [end]

inline void ship(settle::transaction& tx, const order& o) {
  if (o.item == "piano") throw settle::step_refused("no van is large enough for a piano");
  tx.execute("insert into shipments (order_id) values ($1)", {o.id});
}

// [snippet: saga_list]
const auto place_order = settle::saga_of<order>("place_order", 1,                                           //
                                                settle::local("reserve_inventory", reserve).undo(release),  //
                                                settle::remote("charge_payment", charge).undo(refund),      //
                                                settle::local("create_shipment", ship));
// [end]

enum class verdict { approved, damaged, rejected };

// [snippet: return_types]
struct return_request {
  std::string id;
  std::string order_id;
  bool reship = false;
};
BOOST_DESCRIBE_STRUCT(return_request, (), (id, order_id, reship))

struct pickup_confirmed {
  std::string return_id;
};
BOOST_DESCRIBE_STRUCT(pickup_confirmed, (), (return_id))
// [end]

}  // namespace shop

template <>
struct settle::codec<shop::return_request> : settle::json_codec<shop::return_request> {};

// [snippet: return_event]
template <>
struct settle::codec<shop::pickup_confirmed> : settle::json_codec<shop::pickup_confirmed> {
  static constexpr std::string_view topic = "carrier";
  static constexpr std::string_view type = "carrier.pickup_confirmed";
  static std::string key(const shop::pickup_confirmed& e) { return e.return_id; }
};
// [end]

namespace shop {

inline void note(settle::transaction& tx, const std::string& id, const std::string& what) {
  tx.execute("insert into return_notes (return_id, what) values ($1, $2)", {id, what});
}
inline std::string make_label(settle::call& call, const return_request& r) {
  return "label " + r.id + call.key();
}
inline void cancel_label(settle::call&, const return_request&) {}
inline void open_ticket(settle::transaction& tx, const return_request& r) { note(tx, r.id, "ticket"); }
inline verdict ask_warehouse(settle::call&, const return_request& r) {
  return r.order_id == "o-3" ? verdict::rejected : verdict::approved;
}
inline std::string pay_back(settle::call& call, const return_request&) {
  return payments.charge(call.key(), -4200);
}
inline settle::found_step<std::string> find_refund(settle::call& call, const return_request&) {
  const auto found = payments.done.find(call.key());
  if (found == payments.done.end()) return {};  // it may still be on its way: nobody knows
  return {settle::finding::done, found->second};
}
inline void mail(settle::transaction& tx, const return_request& r) { note(tx, r.id, "mail: refunded"); }
inline void reject_mail(settle::transaction& tx, const return_request& r) {
  note(tx, r.id, "mail: rejected");
}
inline void restock_item(settle::transaction& tx, const return_request& r) { note(tx, r.id, "restocked"); }
inline void quarantine_item(settle::transaction& tx, const return_request& r) {
  note(tx, r.id, "quarantined");
}
inline std::string send_back(settle::call&, const return_request&) { return "parcel"; }

namespace returns {

// [snippet: return_steps]
const auto create_label = settle::remote("create_label", make_label).undo(cancel_label);
const auto escalate = settle::local("escalate_to_support", open_ticket);
const auto inspect = settle::remote("inspect", ask_warehouse).on_unknown(settle::unknown::repeat);
const auto refund = settle::remote("refund", pay_back).on_unknown(settle::unknown::ask, find_refund).pivot();
const auto notify = settle::local("notify_buyer", mail);
const auto reject = settle::local("notify_rejection", reject_mail);
const auto restock = settle::local("restock", restock_item);
const auto quarantine = settle::local("quarantine", quarantine_item);
const auto reship = settle::remote("reship", send_back).on_unknown(settle::unknown::hold);
// [end]

// [snippet: return_branches]
inline settle::flow<> tell(settle::saga saga, const return_request& r) { co_await saga.run(notify, r); }

inline settle::flow<> put_away(settle::saga saga, const return_request& r, verdict found) {
  co_await saga.run(found == verdict::approved ? restock : quarantine, r);
}
// [end]

// [snippet: return_body]
inline settle::flow<> process(settle::saga& saga, const return_request& r) {
  co_await saga.run(create_label, r);

  const auto pickup = co_await saga.wait_for<pickup_confirmed>(r.id, 120h);
  if (!pickup) {
    co_await saga.run(escalate, r);
    co_await saga.undo("not picked up within 5 days");  // does not return
  }

  const auto found = co_await saga.run(inspect, r);
  if (found == verdict::rejected) {
    co_await saga.run(reject, r);
    if (r.reship) co_await saga.run(reship, r);
    co_return;
  }

  co_await saga.run(refund, r);  // from here on nothing is undone any more
  auto telling = tell(saga.branch(0), r);
  auto storing = put_away(saga.branch(1), r, found);
  co_await saga.all(telling, storing);
}
// [end]

}  // namespace returns

// [snippet: return_type]
const settle::saga_type return_processing("return_processing", 1, returns::process,
                                          {returns::create_label, returns::escalate, returns::inspect,
                                           returns::refund, returns::notify, returns::reject,
                                           returns::restock, returns::quarantine, returns::reship});
// [end]

}  // namespace shop
