// Eight processes write one file, each as fast as it can: does everyone get on, and how long does the
// unluckiest transaction wait for its turn? Raw: the same with plain SQLite, whose writers sleep and retry.
#include <algorithm>
#include <thread>

#include "harness.hpp"
#include "processes.hpp"
#include "raw_sqlite.hpp"
#include "service.hpp"

namespace {

using namespace std::chrono_literals;
constexpr std::size_t writers = 8;

// Shared numbers: how many are ready, when all begin, and per writer its count and its longest wait.
constexpr std::size_t ready = 0;
constexpr std::size_t start = 1;
constexpr std::size_t count_of(std::size_t writer) { return 2 + 2 * writer; }
constexpr std::size_t wait_of(std::size_t writer) { return 3 + 2 * writer; }
constexpr std::size_t numbers = 2 + 2 * writers;

constexpr const char* notes =
    "create table notes (id integer primary key, writer integer not null, note text not null)";
constexpr const char* insert_note = "insert into notes (writer, note) values ($1, $2)";

// `write` waits for its turn, calls what it is given once it has the turn, and commits.
template <class Write>
void write_until_end(std::size_t me, bench::shared_numbers& shared, std::int64_t for_ms, Write write) {
  ++shared[ready];
  while (shared[start].load() == 0) std::this_thread::sleep_for(1ms);
  const auto end = bench::clock::now() + for_ms * 1ms;
  while (bench::clock::now() < end) {
    const auto asked = bench::clock::now();
    write([&] {
      const std::int64_t waited_us = (bench::clock::now() - asked) / 1us;
      if (waited_us > shared[wait_of(me)].load()) shared[wait_of(me)].store(waited_us);
    });
    ++shared[count_of(me)];
  }
}

// role: ours|raw, database, marks, writer, milliseconds
void run_child(const bench::options& opts) {
  const auto& path = opts.role.at(1);
  bench::shared_numbers shared(opts.role.at(2), numbers);
  const auto me = static_cast<std::size_t>(std::stoul(opts.role.at(3)));
  const auto for_ms = std::stoll(opts.role.at(4));
  if (opts.role.at(0) == "ours") {
    const auto db = settle::sqlite::open(path);
    write_until_end(me, shared, for_ms, [&](auto&& has_turn) {
      auto tx = db->begin();
      has_turn();
      tx.execute(insert_note, {static_cast<std::int64_t>(me), bench::payload()});
      tx.commit();
    });
  } else {
    bench::raw_database db(path);
    auto insert = db.prepare(insert_note);
    write_until_end(me, shared, for_ms, [&](auto&& has_turn) {
      db.begin();
      has_turn();
      insert.bind(1, static_cast<std::int64_t>(me)).bind(2, bench::payload()).run();
      db.commit();
    });
  }
}

struct outcome {
  std::vector<double> counts = std::vector<double>(writers, 0);
  double worst_wait_ms = 0;
  double seconds = 0;

  double total() const {
    double sum = 0;
    for (const auto count : counts) sum += count;
    return sum;
  }
};

void race(const std::string& kind, const std::filesystem::path& folder, std::int64_t for_ms, outcome& into) {
  const std::string marks = folder / (kind + "-marks");
  std::filesystem::remove(marks);
  bench::shared_numbers shared(marks, numbers);
  std::vector<bench::child> children;
  for (std::size_t n = 0; n < writers; ++n)
    children.emplace_back(std::vector<std::string>{kind, folder / (kind + ".db"), marks, std::to_string(n),
                                                   std::to_string(for_ms)});
  while (shared[ready].load() < static_cast<std::int64_t>(writers)) std::this_thread::sleep_for(1ms);
  const auto started = bench::clock::now();
  shared[start] = 1;
  for (auto& one : children) one.wait();
  into.seconds += std::chrono::duration<double>(bench::clock::now() - started).count();
  for (std::size_t n = 0; n < writers; ++n) {
    into.counts[n] += static_cast<double>(shared[count_of(n)].load());
    into.worst_wait_ms = std::max(into.worst_wait_ms, static_cast<double>(shared[wait_of(n)].load()) / 1e3);
  }
}

void add_counters(bench::report& to, const std::string& whose, const outcome& of) {
  for (std::size_t n = 0; n < writers; ++n)
    to.counters.push_back({whose + "_writer_" + std::to_string(n + 1), of.counts[n]});
  to.counters.push_back({whose + "_fewest", *std::ranges::min_element(of.counts)});
  to.counters.push_back({whose + "_most", *std::ranges::max_element(of.counts)});
}

void run(const bench::options& opts) {
  const std::int64_t for_ms = opts.quick ? 200 : 1'000;
  for (const auto* file : {"ours.db", "raw.db"}) bench::open_service(opts.folder / file, notes);
  outcome ours;
  outcome raw;
  for (int round = 0; round < (opts.quick ? 1 : 3); ++round) {
    race("ours", opts.folder, for_ms, ours);
    race("raw", opts.folder, for_ms, raw);
  }

  bench::report rate;
  rate.name = "eight_writers";
  rate.what = "eight processes commit one row at a time into one file, all together";
  rate.unit = "commits/s";
  rate.ours = ours.total() / ours.seconds;
  rate.raw = raw.total() / raw.seconds;
  rate.ratio = rate.ours / *rate.raw;
  rate.target = "all progress";
  rate.reached = *std::ranges::min_element(ours.counts) > 0;
  add_counters(rate, "ours", ours);
  add_counters(rate, "raw", raw);

  bench::report wait;
  wait.name = "eight_writers_worst_wait";
  wait.what = "the longest that one of their transactions waited for its turn";
  wait.unit = "ms";
  wait.lower_is_better = true;
  wait.ours = ours.worst_wait_ms;
  wait.raw = raw.worst_wait_ms;
  wait.ratio = *wait.raw / wait.ours;
  bench::write(opts, {rate, wait});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run, run_child); }
