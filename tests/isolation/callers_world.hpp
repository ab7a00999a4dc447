// Callers of requests, guards, quantities and webhooks, each with a connection and a clock of its own, in
// every order of their steps.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "isolation/runner.hpp"
#include "settle/guard.hpp"
#include "settle/metrics.hpp"
#include "settle/postgres.hpp"
#include "settle/quantity.hpp"
#include "settle/testing.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::isolation {

class callers_world {
 public:
  struct caller {
    testing::manual_time time;
    std::unique_ptr<database> db;
    std::string said;  // by its last call
  };

  // Needs a server, so the constructor does not.
  void open();

  caller& add_caller(const std::string& name, duration ahead = {});
  // A session of two steps: the call in an open transaction, and its end.
  void add(const std::string& name, const std::function<std::string(transaction&)>& call,
           bool commits = true);
  runner& all() { return *all_; }
  void before_each(std::function<void()> what) { before_each_ = std::move(what); }

  exploration explore(const std::function<std::string()>& check);

  const std::string& said(const std::string& name) { return callers_.at(name).said; }
  database& control() { return *callers_.at("control").db; }

  std::string state() { return own_->run("select string_agg(state, ',') from orders"); }
  std::string moves_noted() { return own_->run("select count(*) from settle.guard_history"); }
  std::string seats_left() { return own_->run("select string_agg(free::text, ',' order by id) from seats"); }
  std::string log_sum() { return own_->run("select coalesce(sum(change), 0) from settle.quantity_log"); }
  std::string reservation() { return own_->run("select status from settle.reservations"); }
  int deeds() { return std::stoi(own_->run("select count(*) from deeds")); }

  const guard orders{{.machine = "order",
                      .table = "orders",
                      .states = {"NEW", "PAID", "CANCELLED"},
                      .initial = {"NEW"},
                      .ends = {"PAID", "CANCELLED"},
                      .transitions = {{"NEW", "PAID"}, {"NEW", "CANCELLED"}}}};
  const quantity seats{{.resource = "seats", .table = "seats", .column = "free", .maximum = 1000}};

 private:
  void begin_anew();

  std::optional<test::scratch_database> own_;
  test::quiet_log log_;
  metrics counters_;
  std::map<std::string, caller> callers_;
  std::optional<runner> all_;
  std::function<void()> before_each_;
};

}  // namespace settle::isolation
