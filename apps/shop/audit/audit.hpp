// Proves from the databases of all services, and from what the gateway itself has counted, that nothing was
// lost, doubled or left half-done; or says what was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config.hpp"
#include "settle/broker.hpp"
#include "settle/database.hpp"

namespace shop {

struct audit_check {
  std::string name;                   // stable: one_order_per_session, money_adds_up, …
  std::string what;                   // in plain words, with numbers
  std::vector<std::string> breaches;  // the first of them, in plain words
  std::int64_t breaches_count = 0;
};

struct audit_report {
  std::vector<audit_check> checks;
  std::int64_t orders = 0, lost = 0, doubled = 0, stuck = 0;
  bool clean() const;
  const audit_check& of(const std::string& name) const;
};

// What is looked at; the services may be at work meanwhile, but then what is under way looks stuck.
struct audited {
  settle::database &order, &payment, &warehouse, &checkout, &notification, &gateway;
  settle::broker& broker;
};

audit_report audit(const audited& all);
audit_report audit(const config& of);
std::string to_text(const audit_report& of);

}  // namespace shop
