#include "simulation/sim_saga_world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "settle/metrics.hpp"
#include "settle/sqlite.hpp"
#include "simulation/sim_sagas.hpp"

namespace settle::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class spoken_log final : public log_sink {
 public:
  explicit spoken_log(bool aloud) : aloud_(aloud) {}
  bool enabled(log_level) const override { return aloud_; }
  void write(log_level, std::string_view event, std::initializer_list<log_field> fields) override {
    if (!aloud_) return;
    fmt::print("        {}", event);
    for (const auto& field : fields) fmt::print(" {}={}", field.name, field.value);
    fmt::print("\n");
  }

 private:
  bool aloud_;
};

// How often, in a thousand steps, each thing goes wrong. Every seed leaves some out altogether.
struct appetite {
  std::uint64_t crash, crash_inside, crash_all, stop, power, power_inside, long_wait, clock_jump, disk_full,
      io_error;
};

appetite choose_appetite(testing::seeded_random& random) {
  const auto some = [&]() -> std::uint64_t { return random.below(2) == 0 ? 0 : 4 + random.below(36); };
  appetite a{};
  for (auto* one : {&a.crash, &a.crash_inside, &a.crash_all, &a.stop, &a.power, &a.power_inside, &a.long_wait,
                    &a.clock_jump, &a.disk_full, &a.io_error})
    *one = some();
  return a;
}

class saga_world {
 public:
  explicit saga_world(const world_options& options);
  saga_world_result run();

 private:
  void prepare();
  void step();
  void disturb();
  void act();
  void drain();
  bool drain_round();
  void step_actor(actor& who);
  void crash(actor* who);  // null: everyone
  void lose_power();
  void fill_disk();
  void break_io();
  void restart();
  void let_pass(duration how_long);
  void note(const std::string& who, const std::string& what);
  void bury_the_dead();
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }

  world_options options_;
  testing::seeded_random random_;  // chooses the steps
  testing::seeded_random noise_;   // what the library gets
  testing::manual_time time_;
  timestamp latest_;
  id_source ids_;
  spoken_log log_;
  metrics counters_;
  machine computer_;
  memory_of_customers nobody_;
  troubles none_;
  moody_handlers calm_;
  surroundings in_;
  appetite wants_;
  line_troubles line_;
  bank_actor bank_;
  customer_actor customer_;
  std::vector<std::unique_ptr<host_actor>> hosts_;
  std::vector<actor*> all_;
  std::optional<strike> strike_next_;
  int full_for_ = 0;
  int steps_ = 0;
  saga_world_result result_;
};

saga_world::saga_world(const world_options& options)
    : options_(options),
      random_(options.seed * 2 + 1),
      noise_(options.seed ^ 0x5a6a),
      latest_(time_.now()),
      ids_(time_, noise_),
      log_(options.verbose),
      computer_(options.seed ^ 0xd15c),
      calm_(0),
      in_{computer_, {}, random_, nobody_, none_, calm_, seconds(10)},
      wants_(choose_appetite(random_)),
      bank_(in_, line_),
      customer_(in_) {
  sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, static_cast<int>(options.seed % 1'000'000) + 1, nullptr);
  in_.env = {.time = &time_, .random = &noise_, .ids = &ids_, .log = &log_, .counters = &counters_};
  constexpr duration leases[] = {milliseconds(300), seconds(2), seconds(10)};
  in_.lease_ttl = leases[below(3)];
  in_.checkpoint_pages = below(2) == 0 ? 1000 : 4 + static_cast<int>(below(40));
  for (auto* rate : {&line_.not_made, &line_.delayed, &line_.repeated, &line_.answer_lost, &line_.undo_fails})
    *rate = below(2) == 0 ? 0 : static_cast<int>(below(40));
  const int hosts = 1 + static_cast<int>(below(3));
  for (int i = 1; i <= hosts; ++i) hosts_.push_back(std::make_unique<host_actor>(in_, i));
  for (const auto& one : hosts_) all_.push_back(one.get());
  all_.push_back(&customer_);
  all_.push_back(&bank_);
  the_bank = &bank_;
}

void saga_world::prepare() {
  const process setup(computer_, "setup");
  const auto make = [&](const char* path, const std::vector<std::string>& tables) {
    const auto db = sqlite::open(path, {.env = in_.env, .vfs = setup.vfs()});
    migrate(*db);
    auto tx = db->begin();
    for (const auto& one : tables) tx.execute(one);
    tx.commit();
  };
  make(shop_file, {effects_table, "create table purchases (id text primary key)"});
  make(bank_file, {effects_table});
}

void saga_world::note(const std::string& who, const std::string& what) {
  const auto line = fmt::format("{:4} {:>12} {:6} {}: {}", steps_, (time_.now() - latest_).count(),
                                computer_.files.operations, who, what);
  for (const char c : line)
    result_.trace = (result_.trace ^ static_cast<unsigned char>(c)) * 0x100000001b3;  // FNV-1a
  if (options_.verbose) fmt::print("{}\n", line);
}

void saga_world::let_pass(duration how_long) {
  time_.advance(how_long);
  latest_ = std::max(latest_, time_.now());
  note("clock", fmt::format("{} ms", how_long / milliseconds(1)));
}

void saga_world::bury_the_dead() {
  for (auto* one : all_) one->bury();
}

void saga_world::step_actor(actor& who) {
  const auto during = std::exchange(strike_next_, std::nullopt);
  if (during) {
    note(during->power ? "power loss" : "crash", fmt::format("after {} points", during->points));
    ++(during->power ? result_.power_losses : result_.crashes);
  }
  note(who.name(), who.step(during));
  bury_the_dead();
}

void saga_world::crash(actor* who) {
  ++result_.crashes;
  note("crash", who != nullptr ? who->name() : "everyone");
  if (who != nullptr) return who->kill();
  computer_.kill_all();
  bury_the_dead();
}

void saga_world::lose_power() {
  ++result_.power_losses;
  note("power loss", "now");
  computer_.lose_power();
  bury_the_dead();
}

void saga_world::fill_disk() {
  computer_.files.faults.bytes_free = static_cast<std::int64_t>(below(40'000));
  full_for_ = 5 + static_cast<int>(below(30));
  note("disk", fmt::format("{} bytes left", computer_.files.faults.bytes_free));
}

void saga_world::break_io() {
  auto& faults = computer_.files.faults;
  auto& which = below(3) == 0   ? faults.failing_sync
                : below(2) == 0 ? faults.failing_write
                                : faults.failing_read;
  which = 1 + static_cast<int>(below(40));
  note("disk", fmt::format("write {} sync {} read {}", faults.failing_write, faults.failing_sync,
                           faults.failing_read));
}

void saga_world::disturb() {
  auto choice = below(1000);
  const auto is = [&](std::uint64_t weight) {
    if (choice < weight) return true;
    choice -= weight;
    return false;
  };
  if (is(wants_.crash)) return crash(all_[below(all_.size())]);
  if (is(wants_.crash_all)) return crash(nullptr);
  if (is(wants_.power)) return lose_power();
  if (is(wants_.long_wait)) return let_pass(hours(1 + below(50)));
  if (is(wants_.clock_jump)) return let_pass(seconds(1 + below(7200)) * (below(2) == 0 ? 1 : -1));
  if (is(wants_.disk_full)) return fill_disk();
  if (is(wants_.io_error)) return break_io();
  if (is(wants_.stop)) {
    auto& who = *all_[below(all_.size())];
    note("stop", who.name());
    who.stop();
  } else if (is(wants_.crash_inside)) {
    strike_next_ = {1 + static_cast<int>(below(40)), false};
  } else if (is(wants_.power_inside)) {
    strike_next_ = {1 + static_cast<int>(below(40)), true};
  }
}

void saga_world::act() {
  const auto choice = below(100);
  if (choice < 18) return step_actor(customer_);
  if (choice < 28) return step_actor(bank_);
  if (choice < 80) return step_actor(*hosts_[below(hosts_.size())]);
  if (choice < 97) return let_pass(milliseconds(1 + below(800)));
  let_pass(seconds(below(15)));
}

void saga_world::step() {
  ++steps_;
  if (full_for_ > 0 && --full_for_ == 0) computer_.files.faults.bytes_free = disk_faults().bytes_free;
  disturb();
  act();
}

void saga_world::restart() {
  for (auto* one : all_) one->kill();
  computer_.files.faults = {};
  line_ = {};
  strike_next_.reset();
  customer_.only_finishes = true;
  time_.advance(latest_ - time_.now() + hours(2));
  latest_ = time_.now();
  note("world", "no more faults");
}

bool saga_world::drain_round() {
  bool busy = false;
  step_actor(customer_);
  busy = customer_.did_something();
  step_actor(bank_);
  busy = bank_.did_something() || busy;
  for (const auto& one : hosts_) {
    for (int turns = 0; turns < 20; ++turns) {
      step_actor(*one);
      if (!one->did_something()) break;
      busy = true;
    }
  }
  return busy;
}

// Whoever still has something to do has it within the longest wait and the longest pause between attempts.
void saga_world::drain() {
  constexpr int rounds_max = 200;
  int quiet = 0;
  for (int round = 0; quiet < 3; ++round) {
    if (round == rounds_max) {
      result_.problems.emplace_back("the hosts did not come to rest");
      return;
    }
    const bool busy = drain_round();
    quiet = busy ? 0 : quiet + 1;
    let_pass(busy ? duration(seconds(31)) : duration(hours(61)));
  }
}

saga_world_result saga_world::run() {
  prepare();
  while (steps_ < options_.steps) step();
  restart();
  drain();
  for (auto* one : all_) one->stop();
  const process judge(computer_, "judge");
  const auto found = check_sagas(judge.vfs(), in_.env, customer_, result_);
  result_.problems.insert(result_.problems.end(), found.begin(), found.end());
  for (const auto& one : result_.problems) note("problem", one);
  note("judge",
       fmt::format("{} completed, {} undone, {} held", result_.completed, result_.undone, result_.held));
  return std::move(result_);
}

}  // namespace

saga_world_result run_saga_world(const world_options& options) { return saga_world(options).run(); }

}  // namespace settle::sim
