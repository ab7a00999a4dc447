// Costs are flat on PostgreSQL, too: the relay on an outbox that holds five million published events, and on
// one with a million pending, each against an empty one. The destination confirms everything at once.
#include <future>

#include "harness.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace {

using namespace std::chrono_literals;
constexpr double target = 0.8;
constexpr auto fill_time_max = 100s;  // on a slow machine with fewer rows; the report says with how many

struct sizes {
  std::int64_t published;
  std::int64_t pending;
  std::int64_t events;  // per slice
  int rounds;
};

class outbox {
 public:
  outbox(const std::string& server, const std::string& name) : own_(server, name) {}

  // By two connections, because it takes longer than all the rest.
  std::int64_t fill(std::int64_t events) {
    const auto half = [&, deadline = bench::clock::now() + fill_time_max] {
      bench::raw_connection raw(own_.conninfo());
      const std::int64_t step = std::min<std::int64_t>(events / 2, 100'000);
      std::int64_t filled = 0;
      for (; filled < events / 2 && bench::clock::now() < deadline; filled += step)
        bench::fill_outbox(raw, step);
      return filled;
    };
    auto other = std::async(std::launch::async, half);
    const auto filled = half();
    return filled + other.get();
  }

  std::int64_t publish_before(std::int64_t events) {
    const auto filled = fill(events);
    bench::drain(relay_);
    return filled;
  }

  void settle_down() { raw_.run("checkpoint"); }  // what filling left to write must not fall into a slice

  bench::slice relay_all_of(std::int64_t events) {
    bench::fill_outbox(raw_, events);
    return bench::measure(events, [&] { bench::drain(relay_); });
  }

  // From the front of what is pending; as many come in again afterwards.
  bench::slice relay_some(std::int64_t events) {
    const auto from = nowhere_.taken.load();
    auto done = bench::measure(events, [&] {
      while (nowhere_.taken - from < events && relay_.run_once()) {
      }
    });
    done.units = nowhere_.taken - from;
    bench::fill_outbox(raw_, done.units);
    return done;
  }

  void empty() { raw_.run("truncate settle.outbox"); }

 private:
  bench::scratch own_;
  std::unique_ptr<settle::database> db_ = settle::postgres::open(own_.conninfo());
  bench::raw_connection raw_{own_.conninfo()};
  bench::nowhere nowhere_;
  settle::relay relay_{*db_, nowhere_, {.batch_max = 1000}};
};

bench::report against_empty(const sizes& of, outbox& empty, const std::function<bench::slice()>& full) {
  const auto turns = bench::take_turns(of.rounds, full, [&] {
    auto done = empty.relay_all_of(of.events);
    empty.empty();
    return done;
  });
  auto r = bench::compare(turns, target);
  r.unit = "events/s";
  bench::keep_processor_time_only(r);
  return r;
}

bench::report with_published(const sizes& of, const std::string& server, outbox& empty) {
  outbox full(server, "published");
  const auto published = full.publish_before(of.published);
  full.settle_down();
  auto r = against_empty(of, empty, [&] { return full.relay_all_of(of.events); });
  r.name = "postgres_rows_published";
  r.what = "relay with " + std::to_string(published) +
           " published events in the outbox; raw: the same on an empty outbox";
  r.counters.push_back({"published_before", static_cast<double>(published)});
  return r;
}

bench::report with_pending(const sizes& of, const std::string& server, outbox& empty) {
  outbox full(server, "pending");
  const auto pending = full.fill(of.pending);
  full.settle_down();
  auto r = against_empty(of, empty, [&] { return full.relay_some(of.events); });
  r.name = "postgres_rows_pending";
  r.what = "relay with " + std::to_string(pending) + " events pending; raw: no more than it is measured with";
  r.counters.push_back({"pending", static_cast<double>(pending)});
  return r;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const auto of = opts.quick ? sizes{20'000, 20'000, 2'000, 1} : sizes{5'000'000, 1'000'000, 30'000, 9};
  outbox empty(server, "empty");
  const auto published = with_published(of, server, empty);
  return {published, with_pending(of, server, empty)};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
