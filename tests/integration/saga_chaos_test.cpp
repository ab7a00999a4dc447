// Several real processes share the sagas of one host, and are killed and stopped past their lease while they
// work. The shop's effects and the bank's are rows without constraints, so whatever happens twice is seen.
// SETTLE_CHAOS_SECONDS makes it longer.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <list>
#include <map>
#include <thread>

#include "settle/error.hpp"
#include "settle/participate.hpp"
#include "settle/saga.hpp"
#include "support/child_process.hpp"
#include "support/saga_world.hpp"

namespace settle::test {

struct parcel_taken {
  std::string trip;
};

}  // namespace settle::test

template <>
struct settle::codec<settle::test::parcel_taken> {
  static constexpr std::string_view topic = "parcels";
  static constexpr std::string_view type = "parcel.taken";
  static std::string key(const test::parcel_taken& p) { return p.trip; }
  static std::string encode(const test::parcel_taken& p) { return p.trip; }
  static test::parcel_taken decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace settle::test {
namespace {

using chaos_clock = std::chrono::steady_clock;

constexpr int hosts = 3;
constexpr auto lease = 1s;

std::chrono::seconds chaos_time() {
  const char* told = std::getenv("SETTLE_CHAOS_SECONDS");
  return std::chrono::seconds(told == nullptr ? 2 : std::atoi(told));
}

// A step takes a moment, so that processes end in the middle of some.
void linger() { std::this_thread::sleep_for(2ms); }

auto slow_booking(const std::string& name) {
  return local(name,
               [name](transaction& tx, const trip& t) {
                 note(tx, t.id, name);
                 linger();
                 if (t.has(name + ":refuse")) throw step_refused("no " + name);
               })
      .undo([name](transaction& tx, const trip& t) {
        note(tx, t.id, "undo " + name);
        linger();
      });
}

// The bank is another service: a transaction of its own, with the participant's guard.
database* bank = nullptr;
void call_bank(call& c, const trip& t, const std::string& what) {
  linger();
  {
    auto tx = bank->begin();
    const auto entry =
        participate(tx, {c.saga(), c.step(), c.is_undo() ? saga_op::undo : saga_op::act, c.epoch()});
    if (entry.how() == participation::late) throw step_refused("it was undone");
    if (entry.how() == participation::stale) throw std::runtime_error("somebody else is at it");
    if (entry.fresh()) {
      note(tx, t.id, what);
      entry.record(tx, "done");
    }
    tx.commit();
  }
  linger();
}

const auto reserve = slow_booking("reserve");
const auto pack = slow_booking("pack");
const auto charge = remote("charge", [](call& c, const trip& t) {
                      call_bank(c, t, "charge");
                    }).undo([](call& c, const trip& t) { call_bank(c, t, "undo charge"); });
const auto send =
    remote("send", [](call& c, const trip& t) { call_bank(c, t, "send"); }).on_unknown(unknown::repeat);

const auto ordered = saga_of<trip>("ordered", 1, reserve, charge, pack, send);

flow<> wait_for_parcel(saga& s, const trip& t) {
  co_await s.run(reserve, t);
  const auto taken = co_await s.wait_for<parcel_taken>(t.id, 1h);
  if (!taken) co_await s.undo("nobody has taken it");
  co_await s.run(charge, t);
  co_await s.sleep(50ms);
  co_await s.run(pack, t);
}
const saga_type awaited("awaited", 1, wait_for_parcel, {reserve, charge, pack});

std::atomic<bool> told_to_end = false;

struct chaotic_sagas : saga_tests {
  // With the machine's own clock.
  std::unique_ptr<database> open_for_real(quiet_log& quiet, duration busy_timeout = 10s) {
    const environment env{.log = &quiet};
    if (!on_postgres())
      return sqlite::open(dir.file("service.db"), {.env = env, .busy_timeout = busy_timeout});
    return postgres::open(shared->conninfo(), {.env = env, .busy_timeout = 10s});
  }

  static void add_types(saga_host& to) {
    to.add(ordered).add(awaited).on<parcel_taken>([](const parcel_taken& p) { return p.trip; });
  }

  int serve() {
    std::signal(SIGTERM, [](int) { told_to_end = true; });
    quiet_log quiet;
    const auto own = open_for_real(quiet), banks = open_for_real(quiet);
    bank = banks.get();
    saga_host host(
        *own,
        {.name = "trips", .batch_max = 16, .call_threads = 4, .lease_ttl = lease, .takeover_wait = 500ms});
    add_types(host);
    const background loop(host);
    while (!told_to_end) std::this_thread::sleep_for(5ms);
    return 0;
  }

  void start_host() {
    processes.emplace_back([this] { return serve(); });
  }

  // Starts sagas and brings events all the time, with everything else unsteady.
  void work_for(std::chrono::milliseconds how_long, saga_host& starter, database& own) {
    const auto until = chaos_clock::now() + how_long;
    while (chaos_clock::now() < until) {
      const auto number = ++started;
      const auto id = fmt::format("t{}", number);
      const trip t{id, number % 5 == 0 ? "pack:refuse" : ""};
      try {
        if (number % 2 == 0) {
          starter.start(ordered, id, t);
        } else {
          starter.start(awaited, id, t);
          auto tx = own.begin();
          starter.deliver(tx, "parcel " + id, parcel_taken{id});
          tx.commit();
        }
      } catch (const error&) {  // on SQLite a stopped process may hold the one writer's place
        --started;
      }
      std::this_thread::sleep_for(5ms);
    }
  }

  void strike(saga_host& starter, database& own) {
    const auto victim = std::next(processes.begin(), static_cast<int>(choices.below(processes.size())));
    if (choices.below(2) == 0) {
      ++kills;
      victim->kill();
      processes.erase(victim);
      start_host();
      return;
    }
    ++stops;
    ::kill(victim->pid(), SIGSTOP);
    work_for(std::chrono::milliseconds(200 + choices.below(2'000)), starter, own);
    victim->resume();
  }

  std::int64_t unfinished() {
    return number("select count(*) from " + table("sagas") + " where status in ('RUNNING', 'COMPENSATING')");
  }

  // How long the rest takes, in seconds.
  double await_end() {
    const auto began = chaos_clock::now();
    while (unfinished() > 0 && chaos_clock::now() - began < 60s) std::this_thread::sleep_for(10ms);
    return std::chrono::duration<double>(chaos_clock::now() - began).count();
  }

  void expect_nothing_lost_or_doubled() {
    EXPECT_EQ(unfinished(), 0);
    EXPECT_EQ(number("select count(*) from " + table("sagas")), started);
    EXPECT_EQ(rows("select saga || ' ' || what || ' ' || count(*) from trip_effects group by saga, what "
                   "having count(*) > 1"),
              texts{});
    // Of each saga what was done, what was undone, and how it ended.
    const auto found = db->read().execute(
        "select s.entity_id, s.status, (select count(*) from trip_effects e where e.saga = s.entity_id and "
        "e.what not like 'undo %'), (select count(*) from trip_effects e where e.saga = s.entity_id and "
        "e.what "
        "like 'undo %') from " +
        table("sagas") + " s");
    std::map<std::string, int> ends;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto id = found[i][0].text(), status = found[i][1].text();
      const auto done = found[i][2].integer(), undone = found[i][3].integer();
      ++ends[status];
      const bool was_refused = std::stoi(id.substr(1)) % 5 == 0;
      const auto steps = std::stoi(id.substr(1)) % 2 == 0 ? 4 : 3;
      EXPECT_EQ(status, was_refused ? "COMPENSATED" : "COMPLETED") << id;
      EXPECT_EQ(done, was_refused ? 2 : steps) << id;
      EXPECT_EQ(undone, was_refused ? 2 : 0) << id;
    }
    fmt::print("             {} sagas completed, {} undone; {} kills, {} stops\n", ends["COMPLETED"],
               ends["COMPENSATED"], kills, stops);
  }

  std::list<child_process> processes;
  testing::seeded_random choices{4711};
  std::int64_t started = 0;
  int kills = 0, stops = 0;
};

// Proves S2, S3, S4, S7
TEST_P(chaotic_sagas, of_processes_that_are_killed_and_stopped_lose_and_double_nothing) {
  quiet_log quiet;
  for (int i = 0; i < hosts; ++i) start_host();
  {
    const auto own = open_for_real(quiet, 50ms);  // whom it waits for may have been stopped by itself
    saga_host starter(*own, {.name = "trips", .call_threads = 0});
    add_types(starter);
    const auto until = chaos_clock::now() + chaos_time();
    while (chaos_clock::now() < until) {
      work_for(300ms, starter, *own);
      strike(starter, *own);
    }
    // All but one die with their work in their hands.
    work_for(300ms, starter, *own);
    while (processes.size() > 1) {
      processes.back().kill();
      processes.pop_back();
    }
  }
  const auto took = await_end();
  fmt::print("             the last one had finished the work of all after {:.1f} s\n", took);
  EXPECT_LT(took, 15);
  ::kill(processes.front().pid(), SIGTERM);
  EXPECT_EQ(processes.front().wait(), 0);
  processes.clear();
  expect_nothing_lost_or_doubled();
}

INSTANTIATE_TEST_SUITE_P(databases, chaotic_sagas, both_databases, database_name);

}  // namespace
}  // namespace settle::test
