// PostgreSQL at full load while one transaction stays open: events of others are not delayed, nothing is lost
// or reordered, and the tables shrink again when it ends. Takes thirteen minutes, so it is run by its name
// alone: bench_run postgres_open_transaction. Every ten seconds it prints one line of its plot.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <mutex>

#include "latencies.hpp"
#include "raw_postgres.hpp"
#include "settle/driver/broker.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int producers = 8;
constexpr int keys_each = 50;
constexpr double slower_at_most = 2;  // p99 while it is open, against before: the machine's own noise
constexpr double larger_at_most = 2;

struct plan {
  std::chrono::seconds before;  // until the ring is filled as it will stay
  std::chrono::seconds open;
  std::chrono::seconds after;
  std::chrono::seconds line;  // of the plot
  std::chrono::seconds keep;  // published events
};

// What arrives: the events of each key count from one, and carry when they were published.
class arrivals final : public settle::publisher {
 public:
  std::vector<settle::publish_result> publish(std::span<const settle::message> messages,
                                              const settle::call_limits&) override {
    const auto now = bench::now_ns();
    const std::scoped_lock lock(mutex_);
    for (const auto& m : messages) take(m, now);
    return std::vector<settle::publish_result>(messages.size());
  }

  std::vector<double> latencies() {  // in ms, since the last call
    const std::scoped_lock lock(mutex_);
    return std::exchange(latencies_, {});
  }
  std::int64_t taken() const { return taken_; }
  std::int64_t disorder() const { return disorder_; }
  bool saw_late() const { return saw_late_; }

 private:
  void take(const settle::message& m, std::int64_t now) {
    if (m.key == "late") {
      saw_late_ = true;
      return;
    }
    std::int64_t number = 0, at = 0;
    const auto* const end = m.payload.data() + m.payload.size();
    const auto* const space = std::from_chars(m.payload.data(), end, number).ptr;
    std::from_chars(space + 1, end, at);
    auto& last = last_[m.key];
    if (number != last + 1) ++disorder_;  // once for each gap and each repetition
    last = number;
    latencies_.push_back(static_cast<double>(now - at) / 1e6);
    ++taken_;
  }

  std::mutex mutex_;
  std::map<std::string, std::int64_t> last_;
  std::vector<double> latencies_;
  std::atomic<std::int64_t> taken_ = 0, disorder_ = 0;
  std::atomic<bool> saw_late_ = false;
};

// Full load, until it is destroyed.
class load {
 public:
  explicit load(settle::database& db) {
    for (int p = 0; p < producers; ++p)
      threads_.emplace_back([this, &db, p](const std::stop_token& stop) {
        for (std::int64_t n = 0; !stop.stop_requested(); ++n) {
          auto tx = db.begin();
          settle::publish(tx, {.topic = "load",
                               .type = "tick",
                               .key = fmt::format("{}-{}", p, n % keys_each),
                               .payload = fmt::format("{} {}", n / keys_each + 1, bench::now_ns())});
          tx.commit();
          ++committed_;
        }
      });
  }
  std::int64_t stop() {
    threads_.clear();
    return committed_;
  }

 private:
  std::atomic<std::int64_t> committed_ = 0;
  std::vector<std::jthread> threads_;
};

struct span {
  std::vector<double> latencies;
  std::int64_t bytes_max = 0;
  std::int64_t bytes_last = 0;
  std::int64_t lines = 0;

  // What is kept for a fixed time grows with the load, which is never the same for minutes on these machines.
  double events_per_line() const {
    return static_cast<double>(latencies.size()) / static_cast<double>(lines);
  }
};

class recorder {
 public:
  recorder(const plan& with, arrivals& from, bench::raw_connection& raw)
      : plan_(with), from_(from), raw_(raw) {}

  span record(const char* what, std::chrono::seconds how_long) {
    span all;
    for (auto done = 0s; done < how_long; done += plan_.line) {
      std::this_thread::sleep_for(plan_.line);
      const auto line = from_.latencies();
      all.bytes_last = raw_.number(
          "select sum(pg_total_relation_size(c.oid))::bigint from pg_class c join pg_namespace n on n.oid = "
          "c.relnamespace where n.nspname = 'settle' and c.relkind = 'r'");
      all.bytes_max = std::max(all.bytes_max, all.bytes_last);
      print(what, line, all.bytes_last);
      ++all.lines;
      all.latencies.insert(all.latencies.end(), line.begin(), line.end());
    }
    return all;
  }

 private:
  void print(const char* what, const std::vector<double>& line, std::int64_t bytes) {
    elapsed_ += plan_.line;
    if (line.empty()) {
      fmt::print(stderr, "{:>5} s  {:<7} nothing arrived\n", elapsed_.count(), what);
      return;
    }
    const auto p50 = bench::percentile(line, 0.5), p99 = bench::percentile(line, 0.99);
    std::string bar;
    for (int i = 0; i < 60 && i < static_cast<int>(p99); ++i) bar += i < static_cast<int>(p50) ? "█" : "░";
    fmt::print(stderr, "{:>5} s  {:<7} {:>6.0f} events/s  p50 {:>6.1f} ms  p99 {:>6.1f} ms  {:>5} MB  {}\n",
               elapsed_.count(), what,
               static_cast<double>(line.size()) / static_cast<double>(plan_.line.count()), p50, p99,
               bytes / 1'000'000, bar);
  }

  plan plan_;
  arrivals& from_;
  bench::raw_connection& raw_;
  std::chrono::seconds elapsed_{0};
};

void await_all(const arrivals& from, std::int64_t committed) {
  const auto deadline = bench::clock::now() + 60s;
  while ((from.taken() < committed || !from.saw_late()) && bench::clock::now() < deadline)
    std::this_thread::sleep_for(10ms);
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const auto with = opts.quick ? plan{1s, 2s, 1s, 1s, 2s} : plan{120s, 600s, 60s, 10s, 10s};
  const bench::scratch own(server, "open_transaction");
  bench::raw_connection raw(own.conninfo()), forgotten(own.conninfo());
  const auto db = settle::postgres::open(own.conninfo(), {.connections_max = producers + 8});
  arrivals out;
  settle::relay relay(*db, out, {.outbox_keep = with.keep});
  std::optional<settle::background> relaying(std::in_place, relay);
  load running(*db);
  recorder recording(with, out, raw);
  const auto before = recording.record("before", with.before);
  forgotten.run("begin isolation level repeatable read");
  forgotten.run("select settle.publish('load', 'tick', 'late', '')");
  const auto open = recording.record("open", with.open);
  const bool waited = !out.saw_late();
  forgotten.run("commit");
  const auto after = recording.record("ended", with.after);
  const auto committed = running.stop();
  await_all(out, committed);
  relaying.reset();

  const auto p99_before = bench::percentile(before.latencies, 0.99);
  const auto p99_open = bench::percentile(open.latencies, 0.99);
  const auto growth = static_cast<double>(after.bytes_last) / static_cast<double>(before.bytes_max) *
                      before.events_per_line() / after.events_per_line();
  bench::report r;
  r.name = "postgres_open_transaction";
  r.what = fmt::format(
      "p99 from publish to relay at full load while one transaction is open for {} s; raw: before",
      with.open.count());
  r.unit = "ms";
  r.lower_is_better = true;
  r.ours = p99_open;
  r.raw = p99_before;
  r.ratio = p99_before / p99_open;
  r.target = "none lost, late";
  r.reached = out.taken() == committed && out.disorder() == 0 && waited && out.saw_late() &&
              p99_open <= slower_at_most * p99_before && growth <= larger_at_most;
  r.counters = {{"events", static_cast<double>(committed)},
                {"lost", static_cast<double>(committed - out.taken())},
                {"out_of_order", static_cast<double>(out.disorder())},
                {"bytes_before", static_cast<double>(before.bytes_max)},
                {"bytes_open", static_cast<double>(open.bytes_max)},
                {"bytes_after", static_cast<double>(after.bytes_last)},
                {"growth_at_equal_load", growth}};
  return {r};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
