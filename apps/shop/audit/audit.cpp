#include "audit/audit.hpp"

#include "audit/parts.hpp"
#include "settle/error.hpp"
#include "stores.hpp"

namespace shop {

void finding::breaches(settle::transaction& tx, std::string_view statement) {
  const auto found = tx.execute(statement);
  for (std::size_t i = 0; i < found.size(); ++i) breach(found[i][0].text());
}

std::int64_t count(settle::transaction& tx, std::string_view statement) {
  const auto found = tx.execute(statement);
  return found.empty() || found[0][0].is_null() ? 0 : found[0][0].integer();
}

std::map<std::string, std::int64_t> by_text(settle::transaction& tx, std::string_view statement) {
  const auto found = tx.execute(statement);
  std::map<std::string, std::int64_t> all;
  for (std::size_t i = 0; i < found.size(); ++i) all[found[i][0].text()] = found[i][1].integer();
  return all;
}

std::string settles(const settle::database& db, const std::string& table) {
  return (db.speaks() == settle::dialect::sqlite ? "settle_" : "settle.") + table;
}

bool audit_report::clean() const {
  for (const auto& one : checks)
    if (one.breaches_count != 0) return false;
  return true;
}

const audit_check& audit_report::of(const std::string& name) const {
  for (const auto& one : checks)
    if (one.name == name) return one;
  throw settle::error(settle::errc::invalid_argument, "the audit has no check " + name);
}

audit_report audit(const audited& all) {
  audit_report made;
  const auto add = [&](audit_check one, std::int64_t audit_report::* counted = nullptr) {
    if (counted != nullptr) made.*counted += one.breaches_count;
    made.checks.push_back(std::move(one));
  };
  {
    auto tx = all.order.read();
    made.orders = count(tx, "select count(*) from orders");
  }
  add(one_order_per_session(all), &audit_report::doubled);
  add(one_order_per_key(all), &audit_report::doubled);
  add(one_charge_per_order(all), &audit_report::doubled);
  add(money_adds_up(all));
  add(money_fits_the_orders(all));
  add(refunds_stay_below_captures(all));
  add(sellable_stock_adds_up(all));
  add(physical_stock_adds_up(all));
  add(stock_logs_add_up(all));
  add(warehouse_fits_the_orders(all));
  add(no_mail_twice(all), &audit_report::doubled);
  add(no_event_is_lost(all, made));
  add(nothing_is_stuck(all), &audit_report::stuck);
  return made;
}

audit_report audit(const config& of) {
  const auto open = [&](const char* name) { return open_database(of.of(name).database); };
  const auto order = open("order"), payment = open("payment"), warehouse = open("warehouse"),
             checkout = open("checkout"), notification = open("notification"), gateway = open("gateway");
  const auto broker = open_broker(of.broker_place());
  return audit({*order, *payment, *warehouse, *checkout, *notification, *gateway, *broker});
}

std::string to_text(const audit_report& of) {
  std::string text;
  for (const auto& one : of.checks) {
    text += (one.breaches_count == 0 ? "  ok      " : "  BROKEN  ") + one.name;
    text += std::string(one.name.size() < 30 ? 30 - one.name.size() : 1, ' ') + one.what + "\n";
    for (const auto& breach : one.breaches) text += "            " + breach + "\n";
    const auto more = one.breaches_count - static_cast<std::int64_t>(one.breaches.size());
    if (more > 0) text += "            and " + std::to_string(more) + " more\n";
  }
  return text + std::to_string(of.orders) + " orders: " + std::to_string(of.lost) + " lost, " +
         std::to_string(of.doubled) + " doubled, " + std::to_string(of.stuck) + " stuck; " +
         (of.clean() ? "everything adds up\n" : "NOT EVERYTHING ADDS UP\n");
}

}  // namespace shop
