// Goods: what may be sold, what lies on the shelf, and both logs.
#include "audit/parts.hpp"

namespace shop {
namespace {

// A log whose changes lead from line to line, and to what the column says now.
void compare_log(finding& into, settle::database& db, const std::string& resource, const std::string& table,
                 const std::string& key, const std::string& column) {
  auto tx = db.read();
  const auto log = settles(db, "quantity_log");
  const auto of = " from " + log + " where resource = '" + resource + "'";
  into.breaches(tx, "select '" + resource + " stock of ' || t." + key + " || ' is ' || t." + column +
                        " || ', its log says ' || coalesce(sum(l.change), 0) from " + table +
                        " t left join " + log + " l on l.item = t." + key + " and l.resource = '" + resource +
                        "' group by t." + key + ", t." + column + " having coalesce(sum(l.change), 0) <> t." +
                        column);
  into.breaches(tx,
                "select '" + resource +
                    " log of ' || item || ': line ' || id || ' does not follow' from "
                    "(select id, item, after - change as before, "
                    "lag(after, 1, cast(0 as bigint)) over (partition by item order by id) as left_behind" +
                    of + ") as x where before <> left_behind");
}

}  // namespace

audit_check sellable_stock_adds_up(const audited& all) {
  finding made("sellable_stock_adds_up");
  auto tx = all.order.read();
  made.breaches(
      tx,
      "select 'product ' || sku || ': ' || in_stock || ' left and ' || sold || ' in orders, but ' || "
      "received || ' came, and ' || sales || ' sales' from (select p.sku, p.in_stock, p.received, "
      "p.sales, coalesce((select sum(i.quantity) from order_items i join orders o on o.id = i.order_id "
      "where i.sku = p.sku and o.status <> 'CANCELLED'), 0) as sold from products p) as x "
      "where in_stock + sold <> received or sales <> sold or in_stock < 0");
  return made.done(
      std::to_string(count(tx, "select cast(sum(received) as bigint) from products")) + " pieces came, " +
      std::to_string(count(tx, "select cast(sum(sales) as bigint) from products")) + " are in orders, " +
      std::to_string(count(tx, "select cast(sum(in_stock) as bigint) from products")) + " may be sold");
}

audit_check physical_stock_adds_up(const audited& all) {
  finding made("physical_stock_adds_up");
  std::map<std::string, std::int64_t> announced;
  {
    auto tx = all.order.read();
    announced = by_text(tx, "select sku, received from products");
  }
  auto tx = all.warehouse.read();
  const auto lines = settles(all.warehouse, "reservation_lines"),
             heads = settles(all.warehouse, "reservations");
  // What is held or was confirmed is not on the shelf, unless it was confirmed and came back.
  const auto taken =
      "coalesce((select sum(l.amount) from " + lines + " l join " + heads +
      " r on r.resource = l.resource and r.id = l.reservation join fulfilments f on f.order_id = r.id "
      "where l.resource = 'physical' and l.item = s.sku and (r.status = 'HELD' or "
      "(r.status = 'CONFIRMED' and f.status = 'STOCK_CONFIRMED'))), 0)";
  made.breaches(tx,
                "select 'product ' || sku || ': ' || on_hand || ' on the shelf and ' || taken || "
                "' for orders, but ' || received || ' came' from (select s.sku, s.on_hand, s.received, " +
                    taken + " as taken from stock_items s) as x where on_hand + taken <> received");
  for (const auto& [sku, received] : by_text(tx, "select sku, received from stock_items"))
    if (announced[sku] != received)
      made.breach("product " + sku + ": " + std::to_string(received) +
                  " came, but the order service knows of " + std::to_string(announced[sku]));
  return made.done(std::to_string(count(tx, "select cast(sum(received) as bigint) from stock_items")) +
                   " pieces came, " +
                   std::to_string(count(tx, "select cast(sum(on_hand) as bigint) from stock_items")) +
                   " are on the shelf");
}

audit_check stock_logs_add_up(const audited& all) {
  finding made("stock_logs_add_up");
  compare_log(made, all.order, "sellable", "products", "sku", "in_stock");
  compare_log(made, all.warehouse, "physical", "stock_items", "sku", "on_hand");
  compare_log(made, all.payment, "refundable", "payments", "order_id", "refundable_cents");
  auto tx = all.order.read();
  return made.done(std::to_string(count(tx, "select count(*) from " + settles(all.order, "quantity_log"))) +
                   " lines in the order service's log, each following the one before");
}

audit_check warehouse_fits_the_orders(const audited& all) {
  finding made("warehouse_fits_the_orders");
  auto orders = all.order.read();
  auto goods = all.warehouse.read();
  const auto status_of = [](settle::transaction& tx, std::string_view statement) {
    const auto found = tx.execute(statement);
    std::map<std::string, std::string> made_of;
    for (std::size_t i = 0; i < found.size(); ++i) made_of[found[i][0].text()] = found[i][1].text();
    return made_of;
  };
  const auto here = status_of(goods, "select order_id, status from fulfilments");
  std::int64_t confirmed = 0;
  const auto ordered = status_of(orders, "select id, status from orders");
  for (const auto& [order, status] : ordered) {
    const auto found = here.find(order);
    const std::string there = found == here.end() ? "nothing" : found->second;
    const bool is_packed = there == "STOCK_CONFIRMED";
    confirmed += is_packed ? 1 : 0;
    if ((status == "PROCESSING") != is_packed || (status == "CANCELLED") != (there == "RELEASED"))
      made.breach("order " + order + " is " + status + ", and the warehouse says " + there);
  }
  for (const auto& [order, status] : here)
    if (!ordered.contains(order))
      made.breach("the warehouse has " + status + " for order " + order + ", which is not there");
  return made.done(std::to_string(confirmed) +
                   " orders packed, and every other one has given its goods back");
}

}  // namespace shop
