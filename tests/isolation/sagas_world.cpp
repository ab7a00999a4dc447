#include "isolation/sagas_world.hpp"

#include "isolation/saga_types.hpp"
#include "settle/error.hpp"

namespace settle::isolation {
namespace {

using namespace std::chrono_literals;

thread_local session* running_as = nullptr;

// Rows are deleted: emptying tables costs files and syncs.
constexpr const char* start_anew =
    "delete from trip_effects; delete from bank; delete from settle.sagas; delete from settle.saga_journal; "
    "delete from settle.saga_waits; delete from settle.saga_mailbox; delete from settle.saga_fences; "
    "delete from settle.saga_guards; delete from settle.shares; delete from settle.members";

}  // namespace

host_actor::host_actor(sagas_world& in, session* as, const std::string& name,
                       std::set<std::string, std::less<>> pauses)
    : session_(as), pauses_(std::move(pauses)) {
  db_ = postgres::open(
      test::with(in.conninfo(), "application_name=" + name),
      {.env = {.time = &time_, .log = &log_, .counters = &counters_, .faults = this}, .busy_timeout = 60s});
}

host_actor& host_actor::runs(int times) {
  for (int i = 0; i < times; ++i)
    session_->call("runs", [this] {
      running_as = session_;
      run_once();
    });
  return *this;
}

// One that was replaced says so, and one whose session was ended; it is the effects that are compared.
bool host_actor::run_once() try { return host_->run_once(); } catch (const error& e) {
  errors += std::string(e.what()) + "; ";
  return true;
}

void host_actor::pause_here() {
  if (running_as != nullptr) running_as->pause();
}

void host_actor::reached(std::string_view point) {
  if (running_as == session_ && pauses_.contains(point)) pause_here();
}

void host_actor::begin_anew() {
  time_.advance(testing::manual_time().now() - time_.now());
  host_.reset();
  host_.emplace(*db_, saga_host_options{.name = "trips", .call_threads = 0, .takeover_wait = 2s});
  add_types(*host_);
  errors.clear();
}

bool host_actor::drain() {
  bool any = false;
  for (int turns = 0; turns < 100 && run_once(); ++turns) any = true;
  return any;
}

sagas_world::sagas_world()
    : conninfo_(test::with(own_.conninfo(), "options=-csynchronous_commit=off")), runner_([&] {
        migrate(*postgres::open(conninfo_));
        run("create table trip_effects (n bigint generated always as identity, saga text, what text); "
            "create table bank (n bigint generated always as identity, call_key text, what text, "
            "unique (call_key, what)); create table seats (seat text primary key)");
        return conninfo_;
      }()) {}

host_actor& sagas_world::add_host(const std::string& name, std::set<std::string, std::less<>> pauses) {
  return hosts_.emplace_back(*this, &runner_.add(name), name, std::move(pauses));
}

void sagas_world::add_event(const std::string& name) {
  auto& as = runner_.add(name);
  auto& by = bringer_.emplace(*this, &as, name, std::set<std::string, std::less<>>());
  const auto action = [&by, &as] {
    auto tx = by.db().begin();
    by.host().deliver(tx, "e1", arrival{"trip"});
    as.pause();
    tx.commit();
  };
  as.call("brings it", action).call("commits", action);
}

exploration sagas_world::explore() {
  auto done = runner_.explore({
      .reset = [this] { begin_anew(); },
      .check =
          [this] {
            bool moved = true;
            for (int turns = 0; moved && turns < 20; ++turns) {
              moved = false;
              for (auto& one : hosts_) moved = one.drain() || moved;
            }
            return moved ? std::string("it spins") : check();
          },
  });
  std::printf("             %d orders, %d more cannot happen\n", done.ran, done.impossible);
  return done;
}

void sagas_world::begin_anew() {
  if (++resets_ % 40 == 0) own_.run("vacuum");
  run(std::string(start_anew) + "; delete from seats; insert into seats values ('taken')");
  for (auto& one : hosts_) one.begin_anew();
  if (bringer_) bringer_->begin_anew();
  before_each();
}

std::string sagas_world::effects() const {
  return run("select coalesce(string_agg(what, ', ' order by n), '') from trip_effects");
}

void sagas_world::replace_owner() const {
  run("update settle.shares set lease_until = 0; delete from settle.members");
}

}  // namespace settle::isolation
