#include "isolation/outbox_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "settle/driver/broker.hpp"

namespace settle::isolation {
namespace {

constexpr auto prepare = R"sql(
  create table counters (key text primary key, n bigint not null);
  create table emitted (key text not null, n bigint not null, name text not null);
  create function emit(which text, called text) returns void language plpgsql as $$
  declare
    nth bigint;
  begin
    insert into counters values (which, 1) on conflict (key) do update set n = counters.n + 1
    returning n into nth;
    insert into emitted values (which, nth, called);
    perform settle.publish('t', 'e', which, called);
  end $$;
)sql";

// Rows are deleted, because emptying tables costs files and syncs: 2 ms instead of 60. Numbers and
// transaction ids go on; nothing of an earlier interleaving can be seen.
constexpr auto start_anew = R"sql(
  delete from settle.outbox; delete from settle.outbox_progress; delete from settle.outbox_ticks;
  delete from settle.outbox_held;
  delete from settle.shares; delete from settle.members; delete from counters; delete from emitted;
  insert into settle.outbox_ticks (n, snap, seq_high, xid_high, at)
  select 0, pg_current_snapshot(), last_value, pg_current_xact_id(), 0 from settle.outbox_seq;
  select setval('settle.outbox_ring', 1); update settle.outbox_leaves set opened_at = 0;
)sql";

// What a share has done cannot become undone: a replaced relay may not write over its heir's progress.
constexpr query count_steps_back{"test.steps_back", "", R"sql(
  select count(*) from (
    select row(tick, upto, position) < row(lag(tick) over notes, lag(upto) over notes, lag(position) over notes)
             as back
    from settle.outbox_progress p join generate_series(0, 15) share on (p.shares >> share) & 1 = 1
    window notes as (partition by share order by p.id)) steps
  where back
)sql"};

constexpr query read_emitted{"test.emitted", "", "select key, name from emitted order by key, n"};
constexpr query count_pending{"test.pending", "",
                              "select count(*) from settle.outbox_events where status <> 'PUBLISHED'"};

}  // namespace

outbox_world::outbox_world()
    : db_(postgres::open(conninfo(), {.env = {.log = &log_, .counters = &counters_}})), runner_(conninfo()) {
  migrate(*db_);
  auto tx = db_->begin();
  tx.execute_script(prepare);
  // A vacuum that holds a leaf for a moment would keep the ring from turning.
  for (int leaf = 0; leaf < 8; ++leaf)
    tx.execute_script(fmt::format("alter table settle.outbox_{} set (autovacuum_enabled = off)", leaf));
  tx.commit();
}

relay_actor& outbox_world::relays(const std::string& name, const relay_setup& setup) {
  return relays_.emplace_back(*this, runner_.add(name), setup);
}

environment outbox_world::env(time_source& time, fault_points* faults) {
  return {.time = &time, .log = &log_, .counters = &counters_, .faults = faults};
}

exploration outbox_world::explore() {
  return runner_.explore({.reset = [this] { reset(); }, .check = [this] { return check(); }});
}

void outbox_world::reset() {
  if (++resets_ % 40 == 0) own_.run("vacuum");  // what was deleted makes everything slower
  {
    auto tx = db_->begin();
    tx.execute_script(start_anew);
    tx.commit();
  }
  for (auto& one : relays_) one.begin_anew();
  seen_.clear();
  if (before_each_.empty()) return;
  auto tx = db_->begin();
  tx.execute_script(before_each_);
  tx.commit();
}

std::vector<publish_result> outbox_world::publish(std::span<const message> batch, const call_limits&) {
  for (const auto& one : batch) {
    if (on_publish_) on_publish_(one.key);
    const std::scoped_lock lock(mutex_);
    seen_.push_back({one.key, one.payload});
  }
  return std::vector<publish_result>(batch.size());
}

event_names outbox_world::committed() const {
  const auto rows = db_->read().execute(read_emitted);
  event_names all;
  for (std::size_t i = 0; i < rows.size(); ++i) all[rows[i][0].text()].push_back(rows[i][1].text());
  return all;
}

event_names outbox_world::delivered() const {
  const std::scoped_lock lock(mutex_);
  event_names all;
  for (const auto& one : seen_) {
    auto& names = all[one.key];
    if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
  }
  return all;
}

std::string outbox_world::check() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& one : relays_) moved = one.drain() || moved;
  }
  if (const auto wrong = compare(); !wrong.empty()) return wrong;
  if (pending()) {
    for (auto& one : relays_) one.leave();  // notes what a relay has not noted yet
    if (pending()) return "everything is delivered, and not everything is noted as published";
  }
  auto tx = db_->read();
  if (tx.execute(count_steps_back)[0][0].integer() > 0) return "the progress of a share went back";
  return {};
}

bool outbox_world::pending() const { return db_->read().execute(count_pending)[0][0].integer() > 0; }

std::string outbox_world::compare() const {
  const auto should = committed();
  const auto was = delivered();
  for (const auto& [key, names] : should)
    for (const auto& name : names)
      if (!was.contains(key) || std::ranges::find(was.at(key), name) == was.at(key).end())
        return fmt::format("lost: {} of key {} was committed and never delivered", name, key);
  for (const auto& [key, names] : was)
    for (const auto& name : names)
      if (!should.contains(key) || std::ranges::find(should.at(key), name) == should.at(key).end())
        return fmt::format("ghost: {} of key {} was delivered and never committed", name, key);
  for (const auto& [key, names] : should)
    if (names != was.at(key))
      return fmt::format("reordered: key {} is {} and was delivered as {}", key, names, was.at(key));
  std::size_t expected = 0;
  for (const auto& [key, names] : should) expected += names.size();
  if (!copies_allowed_ && seen_.size() != expected)
    return fmt::format("doubled: {} events were delivered {} times", expected, seen_.size());
  return {};
}

relay_actor::relay_actor(outbox_world& in, session& as, relay_setup setup)
    : world_(in), session_(as), setup_(std::move(setup)) {
  time_.advance(setup_.clock_ahead);
  db_ = postgres::open(test::with(in.conninfo(), "application_name=" + as.name()),
                       {.env = in.env(time_, this)});
}

relay_actor& relay_actor::runs(int times) {
  for (int i = 0; i < times; ++i) session_.call("runs", [this] { relay_->run_once(); });
  return *this;
}

relay_actor& relay_actor::drains(int times) {
  for (int i = 0; i < times; ++i) session_.call("drains", [this] { drain_in_time(); });
  return *this;
}

void relay_actor::begin_anew() {
  relay_.emplace(*db_, world_.destination(), setup_.options);
  if (setup_.begins_as_owner) drain();
}

bool relay_actor::drain() {
  bool any = false;
  while (relay_->run_once()) any = true;
  return any;
}

void relay_actor::drain_in_time() {
  const auto due = world_.committed();
  drain();
  const auto was = world_.delivered();
  for (const auto& [key, names] : due)
    for (const auto& name : names)
      if (!was.contains(key) || std::ranges::find(was.at(key), name) == was.at(key).end())
        throw std::runtime_error(fmt::format("{} of key {} was committed, and has to wait", name, key));
}

void relay_actor::reached(std::string_view point) {
  if (setup_.pauses.contains(point)) session_.pause();
}

}  // namespace settle::isolation
