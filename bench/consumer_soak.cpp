// A consumer on SQLite at full load for ten minutes, one message in a hundred failing: whether its memory
// stays as it was after the first minute. Run by its name alone: bench_run consumer_soak. Every six seconds
// it prints one line.
//
// Nothing here grows by itself: messages are made when they are needed, the handler forgets what has
// succeeded, and records go after half a minute, so that what removes them runs as well.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "consuming.hpp"
#include "harness.hpp"
#include "memory_use.hpp"
#include "raw_consumer.hpp"
#include "service.hpp"

namespace {

using namespace std::chrono_literals;

constexpr double larger_at_most = 1.1;
constexpr std::int64_t fed_at_once = 8 * bench::batch;

struct plan {
  std::chrono::milliseconds warm_up;
  std::chrono::milliseconds measured;
  std::chrono::milliseconds line;
  std::chrono::milliseconds keep;  // records
};

class soak {
 public:
  soak(const std::string& path, const plan& with)
      : path_(path), plan_(with), db_(bench::open_service(path, bench::shipments)) {
    db_ = settle::sqlite::open(path, {.env = bench::without_log()});
    consumer_.emplace(*db_, broker_, settle::consumer_options{.name = "warehouse", .dedup_keep = plan_.keep});
    consumer_->on(bench::topic, bench::type, [this](const settle::message& m, settle::transaction& tx) {
      handler_.fail_if_told(m);
      tx.execute(bench::insert_shipment, {m.key});
    });
  }
  ~soak() { consumer_->leave(); }
  soak(const soak&) = delete;
  soak& operator=(const soak&) = delete;

  // The largest of its lines.
  bench::memory_use run(const char* what, std::chrono::milliseconds how_long) {
    bench::memory_use largest;
    for (auto done = 0ms; done < how_long; done += plan_.line) {
      const auto before = bench::ended(*consumer_);
      const auto until = bench::clock::now() + plan_.line;
      while (bench::clock::now() < until) feed_and_run();
      elapsed_ += plan_.line;
      const auto used = bench::memory_now();
      fmt::print(stderr,
                 "{:>6.1f} s  {:<8} {:>7.0f} messages/s  Pss {:>7.0f} KiB  Rss {:>7.0f} KiB  file {:>5} MB\n",
                 static_cast<double>(elapsed_.count()) / 1e3, what,
                 static_cast<double>(bench::ended(*consumer_) - before) * 1e3 /
                     static_cast<double>(plan_.line.count()),
                 used.pss, used.rss, std::filesystem::file_size(path_) / 1'000'000);
      largest = {std::max(largest.rss, used.rss), std::max(largest.pss, used.pss)};
    }
    return largest;
  }

  const settle::consumer& consumer() const { return *consumer_; }

 private:
  void feed_and_run() {
    if (broker_.size() < fed_at_once)
      for (std::int64_t n = 0; n < fed_at_once; ++n) bench::add_failing(broker_, fed_++);
    consumer_->run_once({});
  }

  std::string path_;
  plan plan_;
  std::unique_ptr<settle::database> db_;
  bench::memory_broker broker_;
  std::optional<settle::consumer> consumer_;
  bench::failing_handler handler_;
  std::int64_t fed_ = 0;
  std::chrono::milliseconds elapsed_{0};
};

void run(const bench::options& opts) {
  const auto with = opts.quick ? plan{200ms, 400ms, 100ms, 50ms} : plan{60s, 540s, 6s, 30s};
  soak running(opts.folder / "soak.db", with);
  const auto before = running.run("warm-up", with.warm_up);
  const auto after = running.run("measured", with.measured);
  bench::report r;
  r.name = "consumer_soak";
  r.what =
      fmt::format("memory (Pss) of a consumer at full load with failures, over {} s; raw: in the first {} s",
                  with.measured / 1s, with.warm_up / 1s);
  r.unit = "KiB";
  r.lower_is_better = true;
  r.ours = after.pss;
  r.raw = before.pss;
  r.ratio = before.pss / after.pss;
  r.target = "<= 1.1 x raw";
  r.reached = after.pss <= larger_at_most * before.pss;
  r.counters = {{"rss_before_kib", before.rss},
                {"rss_after_kib", after.rss},
                {"messages", static_cast<double>(bench::ended(running.consumer()))}};
  bench::add_failure_counts(r, running.consumer());
  bench::write(opts, {r});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
