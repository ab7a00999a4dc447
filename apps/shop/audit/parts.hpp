// The parts of the audit. Each looks at one promise.
#pragma once

#include <map>
#include <string>

#include "audit/audit.hpp"

namespace shop {

// Collects what breaks one promise.
class finding {
 public:
  explicit finding(std::string name) { made_.name = std::move(name); }

  void breach(const std::string& what) {
    if (made_.breaches.size() < shown_max) made_.breaches.push_back(what);
    ++made_.breaches_count;
  }
  // A row for each breach; the statement puts them into words.
  void breaches(settle::transaction& tx, std::string_view statement);
  audit_check done(std::string what) {
    made_.what = std::move(what);
    return std::move(made_);
  }

 private:
  static constexpr std::size_t shown_max = 10;
  audit_check made_;
};

// The first cell of the first row; 0 if that is null.
std::int64_t count(settle::transaction& tx, std::string_view statement);
// The first two columns of all rows: a text and a number.
std::map<std::string, std::int64_t> by_text(settle::transaction& tx, std::string_view statement);
// What a table of Settle's is called there.
std::string settles(const settle::database& db, const std::string& table);

audit_check one_order_per_session(const audited& all);
audit_check one_order_per_key(const audited& all);
audit_check one_charge_per_order(const audited& all);
audit_check money_adds_up(const audited& all);
audit_check money_fits_the_orders(const audited& all);
audit_check refunds_stay_below_captures(const audited& all);
audit_check sellable_stock_adds_up(const audited& all);
audit_check physical_stock_adds_up(const audited& all);
audit_check stock_logs_add_up(const audited& all);
audit_check warehouse_fits_the_orders(const audited& all);
audit_check no_mail_twice(const audited& all);
audit_check nothing_is_stuck(const audited& all);
// Also fills in how many events were lost and doubled.
audit_check no_event_is_lost(const audited& all, audit_report& into);

}  // namespace shop
