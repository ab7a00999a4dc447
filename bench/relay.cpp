// The relay: from the outbox to the embedded broker, against batched inserts of the same rows into the same
// table with plain SQLite.
#include "harness.hpp"
#include "raw_broker.hpp"
#include "service.hpp"

namespace {

constexpr double target = 0.5;

void run(const bench::options& opts) {
  const std::string folder = opts.folder;
  const std::int64_t events = opts.quick ? 1'000 : 8'000;
  const auto outbox = settle::sqlite::open(folder + "/outbox.db");
  settle::migrate(*outbox);
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::relay relay(*outbox, broker->publishing());
  bench::raw_broker raw(folder + "/raw.db");

  const auto turns = bench::take_turns(
      opts.quick ? 1 : 21,
      [&] {
        bench::fill_outbox(*outbox, events);
        return bench::measure(events, [&] { bench::drain(relay); });
      },
      [&] { return bench::measure(events, [&] { raw.insert(events); }); });

  auto r = bench::compare(turns, target);
  r.name = "relay";
  r.what = "outbox to embedded broker, batches of 500; raw: the same rows inserted into the broker's table";
  r.unit = "events/s";
  bench::write(opts, {r});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
