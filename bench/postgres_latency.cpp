// From the return of commit() to the first line of the handler, on a system that is idle otherwise: the
// service's database and the consumer's on PostgreSQL, the embedded broker between them, relay and consumer
// in the producer's process. The producer uses the relay's own database object, whose commits wake it
// directly, and another one, whose commits reach it through NOTIFY as those of other processes do.
//
// Raw: a bare NOTIFY from its sending to its arrival, in turns with ours: how fast PostgreSQL can tell
// anybody anything. There are two synced commits more in ours (the relay's tick, the message into the
// broker).
#include <poll.h>

#include "latency_shop.hpp"

namespace {

constexpr bench::latency_targets targets{2, 8};

class bare_notify {
 public:
  explicit bare_notify(const std::string& conninfo) : sender_(conninfo), listener_(conninfo) {
    listener_.run("listen settle_bench");
  }

  double milliseconds() {
    const auto started = bench::now_ns();
    PQsendQuery(sender_.get(), "notify settle_bench");
    PQflush(sender_.get());
    while (!arrived()) {
      pollfd line{PQsocket(listener_.get()), POLLIN, 0};
      if (::poll(&line, 1, 30'000) <= 0)
        throw std::runtime_error("a notification did not arrive within 30 s");
    }
    const auto took = static_cast<double>(bench::now_ns() - started) / 1e6;
    while (auto* answer = PQgetResult(sender_.get())) PQclear(answer);
    return took;
  }

 private:
  bool arrived() {
    if (PQconsumeInput(listener_.get()) == 0) throw std::runtime_error(PQerrorMessage(listener_.get()));
    auto* told = PQnotifies(listener_.get());
    if (told == nullptr) return false;
    PQfreemem(told);
    return true;
  }

  bench::raw_connection sender_;
  bench::raw_connection listener_;
};

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const std::size_t count = opts.quick ? 20 : 400;
  const auto shop = [&](const std::string& name) {
    return std::make_unique<bench::latency_shop>(server, name,
                                                 settle::sqlite::open_broker(opts.folder / (name + ".db")));
  };
  std::vector<bench::report> reports;
  {
    const auto with = shop("direct");
    bare_notify bare(with->service());
    const auto took = with->emit(with->own_database(), count, [&] { return bare.milliseconds(); });
    bench::add_latencies(reports, "postgres_latency", "the relay woken by the producer's process", targets,
                         took.ours, took.raw);
  }
  const auto with = shop("notified");
  const auto producer = with->another_database();
  bare_notify bare(with->service());
  const auto took = with->emit(*producer, count, [&] { return bare.milliseconds(); });
  bench::add_latencies(reports, "postgres_notified", "the relay woken by NOTIFY", targets, took.ours,
                       took.raw);
  return reports;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
