// Costs are flat: the relay on an outbox that holds a million published events, against an empty one. The
// destination confirms everything at once, so that only the outbox is measured.
#include "harness.hpp"
#include "service.hpp"
#include "settle/driver/broker.hpp"

namespace {

constexpr double target = 0.8;

class confirms_everything final : public settle::publisher {
 public:
  std::vector<settle::publish_result> publish(std::span<const settle::message> batch,
                                              const settle::call_limits&) override {
    return std::vector<settle::publish_result>(batch.size());
  }
};

class outbox {
 public:
  explicit outbox(const std::string& path) : db_(settle::sqlite::open(path)) { settle::migrate(*db_); }

  void publish_before(std::int64_t events) {
    bench::fill_outbox(*db_, events);
    settle::relay fast(*db_, nowhere_, {.batch_max = 10'000});
    bench::drain(fast);
    fast.leave();
  }

  bench::slice relay_some(std::int64_t events) {
    bench::fill_outbox(*db_, events);
    return bench::measure(events, [&] { bench::drain(relay_); });
  }

 private:
  std::unique_ptr<settle::database> db_;
  confirms_everything nowhere_;
  settle::relay relay_{*db_, nowhere_};
};

void run(const bench::options& opts) {
  const std::int64_t published = opts.quick ? 10'000 : 1'000'000;
  const std::int64_t events = opts.quick ? 1'000 : 10'000;
  outbox full(opts.folder / "full.db");
  outbox empty(opts.folder / "empty.db");
  full.publish_before(published);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 11, [&] { return full.relay_some(events); }, [&] { return empty.relay_some(events); });

  auto r = bench::compare(turns, target);
  r.name = "relay_million_published";
  r.what = "relay with 1,000,000 published events in the outbox; raw: the same on an empty outbox";
  r.unit = "events/s";
  r.counters.push_back({"published_before", static_cast<double>(published)});
  bench::write(opts, {r});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
