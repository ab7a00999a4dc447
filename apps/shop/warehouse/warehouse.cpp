#include "warehouse/warehouse.hpp"

#include "json.hpp"
#include "settle/http_once.hpp"
#include "settle/publish.hpp"

namespace shop {

namespace http = settle::http;

const std::string_view warehouse_tables = R"sql(
create table if not exists stock_items (
  sku      text primary key,
  on_hand  bigint not null check (on_hand >= 0),  -- on the shelf, for nobody yet
  received bigint not null                        -- all that has ever come
);
create table if not exists receipts (
  receipt_id text primary key,
  sku        text not null,
  quantity   bigint not null
);
create table if not exists fulfilments (
  order_id text primary key,
  status   text not null check (status in ('RESERVED', 'SHORT', 'STOCK_CONFIRMED', 'REJECTED', 'RELEASED'))
);
)sql";

namespace {

std::string status_of(settle::transaction& tx, const std::string& order) {
  const auto found = tx.execute("select status from fulfilments where order_id = $1", {order});
  return found.empty() ? std::string() : found[0][0].text();
}

// The row decides between two that come at the same time; what it says is the last word so far.
void note(settle::transaction& tx, const std::string& order, const std::string& status) {
  tx.execute(
      "insert into fulfilments (order_id, status) values ($1, $2) "
      "on conflict (order_id) do update set status = excluded.status",
      {order, status});
}

}  // namespace

warehouse_service::warehouse_service(const surroundings& with)
    : db_(with.db),
      hold_for_(with.of.hold),
      stock_({.resource = "physical", .table = "stock_items", .key = "sku", .column = "on_hand"}),
      listener_(with.db, with.broker, listening("warehouse", {std::string(topics::orders)})),
      expiry_(with.db, stock_) {
  using settle::transaction;
  listener_.on<order_pending_payment>([this](const auto& e, transaction& tx) { reserve(tx, e); });
  listener_.on<order_paid>([this](const auto& e, transaction& tx) { confirm(tx, e); });
  listener_.on<order_cancelled>([this](const auto& e, transaction& tx) { release(tx, e); });
}

bool warehouse_service::hold(settle::transaction& tx, const std::string& order,
                             const std::vector<line>& lines) const {
  std::vector<settle::quantity_line> wanted;
  for (const auto& one : lines) wanted.push_back({one.sku, one.quantity});
  return static_cast<bool>(stock_.reserve(tx, order, wanted, hold_for_));
}

void warehouse_service::reserve(settle::transaction& tx, const order_pending_payment& what) const {
  if (!status_of(tx, what.order_id).empty()) return;  // paid or cancelled before this came
  note(tx, what.order_id, hold(tx, what.order_id, what.lines) ? "RESERVED" : "SHORT");
}

void warehouse_service::confirm(settle::transaction& tx, const order_paid& what) const {
  const auto status = status_of(tx, what.order_id);
  if (status == "STOCK_CONFIRMED" || status == "RELEASED" || status == "REJECTED") return;
  // SHORT: perhaps something has come since. None: the first that is heard of this order.
  if (status != "RESERVED") hold(tx, what.order_id, what.lines);
  const auto end = stock_.confirm(tx, what.order_id);
  if (end.status == settle::reservation_status::confirmed) {
    note(tx, what.order_id, "STOCK_CONFIRMED");
    settle::publish(tx, stock_reserved{what.order_id, what.lines});
  } else {
    const bool expired = end.status == settle::reservation_status::expired;
    note(tx, what.order_id, "REJECTED");
    settle::publish(tx, stock_rejected{what.order_id, expired ? "stock_hold_expired" : "stock_missing"});
  }
}

void warehouse_service::release(settle::transaction& tx, const order_cancelled& what) const {
  const auto status = status_of(tx, what.order_id);
  if (status == "RELEASED") return;
  std::vector<line> released;
  if (status == "RESERVED") {
    const auto end = stock_.cancel(tx, what.order_id, "released");
    if (end.status == settle::reservation_status::cancelled) released = what.lines;
  } else if (status == "STOCK_CONFIRMED") {  // it was packed, and goes back
    released = what.lines;
    for (const auto& one : released)
      stock_.add(tx, one.sku, one.quantity, {.reason = "put_back", .reference = what.order_id});
  }
  note(tx, what.order_id, "RELEASED");  // also what was never heard of: a late order.paid finds this
  settle::publish(tx, stock_released{what.order_id, what.reason, released});
}

bool warehouse_service::receive(settle::transaction& tx, const stock_received& what) const {
  const auto mine = tx.execute(
      "insert into receipts (receipt_id, sku, quantity) values ($1, $2, $3) on conflict do nothing "
      "returning receipt_id",
      {what.receipt_id, what.sku, what.quantity});
  if (mine.empty()) return false;
  tx.execute("insert into stock_items (sku, on_hand, received) values ($1, 0, 0) on conflict do nothing",
             {what.sku});
  tx.execute("update stock_items set received = received + $2 where sku = $1", {what.sku, what.quantity});
  stock_.add(tx, what.sku, what.quantity, {.reason = "received", .reference = what.receipt_id});
  settle::publish(tx, what);
  return true;
}

void warehouse_service::add_routes(http::router& to) {
  const http::idempotency policy{.service = "shop.receipts", .caller = user_of, .key_field = "receipt_id"};
  to.post("/receipts",
          http::idempotent(db_, policy, [this](const auto& asked, auto& tx) -> http::kept_response {
            const auto given = read_json(asked);
            if (!given.refused.empty()) return {given.problem(asked), settle::keeps::nothing};
            const stock_received what{given.text("sku"), given.text("receipt_id"), given.number("quantity")};
            if (what.sku.empty() || what.quantity < 1)
              return http::problem(400, "invalid_request", "sku and a quantity above zero have to be there",
                                   asked.path);
            receive(tx, what);
            return http::text(201, "application/json", "{}");
          }));
  to.get("/stock/{sku}", [this](const http::request& asked) {
    auto tx = db_.read();
    const auto found =
        tx.execute("select on_hand, received from stock_items where sku = $1", {asked.parameter("sku")});
    if (found.empty()) return http::problem(404, "product_unknown", "there is no such product", asked.path);
    json_object made;
    made.text("sku", asked.parameter("sku"));
    made.number("on_hand", found[0][0].integer());
    made.number("received", found[0][1].integer());
    return http::text(200, "application/json", made.done());
  });
}

}  // namespace shop
