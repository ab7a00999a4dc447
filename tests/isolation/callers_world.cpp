#include "isolation/callers_world.hpp"

#include <cstdio>

namespace settle::isolation {

void callers_world::open() {
  own_.emplace();
  migrate(*add_caller("control").db);
  // Deeds have no key: a second one would be seen.
  own_->run(
      "create table orders (id int primary key, state text); "
      "create table seats (id int primary key, free int); create table deeds (what text not null)");
  all_.emplace(own_->conninfo());
}

callers_world::caller& callers_world::add_caller(const std::string& name, duration ahead) {
  auto& one = callers_[name];
  one.time.advance(ahead);
  const environment env{.time = &one.time, .log = &log_, .counters = &counters_};
  one.db = postgres::open(test::with(own_->conninfo(), "application_name=" + name),
                          {.env = env, .busy_timeout = std::chrono::seconds(60)});
  return one;
}

void callers_world::add(const std::string& name, const std::function<std::string(transaction&)>& call,
                        bool commits) {
  auto& one = add_caller(name);
  auto& as = all_->add(name);
  const auto action = [&one, &as, call, commits] {
    auto tx = one.db->begin();
    one.said = call(tx);
    as.pause();
    if (commits) tx.commit();
  };
  as.call("calls", action).call(commits ? "commits" : "rolls back", action);
}

exploration callers_world::explore(const std::function<std::string()>& check) {
  auto done = all_->explore({.reset = [this] { begin_anew(); }, .check = check});
  std::printf("             %d orders, %d more cannot happen\n", done.ran, done.impossible);
  return done;
}

void callers_world::begin_anew() {
  // A few rows are deleted much faster than a dozen tables are truncated.
  std::string statements;
  for (const auto* table :
       {"orders", "seats", "deeds", "settle.guard_history", "settle.quantity_log", "settle.reservation_lines",
        "settle.reservations", "settle.idempotency_keys", "settle.webhook_events", "settle.webhook_keys"})
    statements += "delete from " + std::string(table) + "; ";
  own_->run(statements + "insert into orders values (1, 'NEW'); insert into seats values (1, 3), (2, 3)");
  for (auto& [unused, one] : callers_) one.said.clear();
  if (before_each_) before_each_();
}

}  // namespace settle::isolation
