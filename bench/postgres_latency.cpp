// From the return of commit() to the first line of the handler, on a system that is idle otherwise: the
// service's database and the consumer's on PostgreSQL, the embedded broker between them, relay and consumer
// in the producer's process. The producer uses the relay's own database object, whose commits wake it
// directly, and another one, whose commits reach it through NOTIFY as those of other processes do.
//
// Raw: a bare NOTIFY from its sending to its arrival, in turns with ours: how fast PostgreSQL can tell
// anybody anything. There are two synced commits more in ours (the relay's tick, the message into the
// broker).
#include <poll.h>

#include <array>

#include "latencies.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/consume.hpp"
#include "settle/postgres.hpp"

namespace {

using namespace std::chrono_literals;
constexpr std::size_t samples_max = 2000;
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

struct latencies {
  std::vector<double> ours;
  std::vector<double> raw;
};

class shop {
 public:
  shop(const std::string& server, const std::filesystem::path& folder, const std::string& name)
      : service_(server, name + "_service"),
        warehouse_(server, name + "_warehouse"),
        broker_(settle::sqlite::open_broker(folder / (name + ".db"))) {
    bench::raw_connection(warehouse_.conninfo())
        .run("create table shipments (id bigint generated always as identity primary key, order_id text)");
    // The handler's first act is to note the time under the event's number, which is its key.
    consumer_.on(bench::topic, bench::type, [this](const settle::message& m, settle::transaction& tx) {
      arrived_[static_cast<std::size_t>(std::stoll(m.key))].store(bench::now_ns());
      tx.execute("insert into shipments (order_id) values ($1)", {m.key});
    });
  }

  settle::database& own_database() { return *outbox_; }
  std::unique_ptr<settle::database> another_database() const {
    return settle::postgres::open(service_.conninfo());
  }

  // The pauses differ, so that they do not fall in step with any timer; the first events wait for leases and
  // are not counted.
  latencies emit(settle::database& from, std::size_t count) {
    constexpr std::size_t not_counted = 10;
    const settle::background relaying(relay_);
    const settle::background consuming(consumer_);
    bare_notify bare(service_.conninfo());
    latencies took;
    for (std::size_t n = 1; n <= count + not_counted; ++n) {
      const auto ours = emit_one(from, n);
      std::this_thread::sleep_for(2ms + 1ms * (n * 7 % 11));
      const auto raw = bare.milliseconds();
      std::this_thread::sleep_for(2ms);
      if (n <= not_counted) continue;
      took.ours.push_back(ours);
      took.raw.push_back(raw);
    }
    return took;
  }

 private:
  double emit_one(settle::database& from, std::size_t number) {
    auto tx = from.begin();
    auto event = bench::event_of(0);
    event.key = std::to_string(number);
    settle::publish(tx, event);
    tx.commit();
    const auto committed = bench::now_ns();
    bench::await(arrived_[number]);
    return std::max(static_cast<double>(arrived_[number].load() - committed) / 1e6, 0.0);
  }

  bench::scratch service_;
  bench::scratch warehouse_;
  std::array<std::atomic<std::int64_t>, samples_max> arrived_{};
  std::unique_ptr<settle::broker> broker_;
  std::unique_ptr<settle::database> outbox_ = settle::postgres::open(service_.conninfo());
  std::unique_ptr<settle::database> stock_ = settle::postgres::open(warehouse_.conninfo());
  settle::relay relay_{*outbox_, broker_->publishing()};
  settle::consumer consumer_{*stock_, *broker_, {.name = "warehouse"}};
};

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const std::size_t count = opts.quick ? 20 : 400;
  std::vector<bench::report> reports;
  {
    const auto with = std::make_unique<shop>(server, opts.folder, "direct");
    const auto took = with->emit(with->own_database(), count);
    bench::add_latencies(reports, "postgres_latency", "the relay woken by the producer's process", targets,
                         took.ours, took.raw);
  }
  const auto with = std::make_unique<shop>(server, opts.folder, "notified");
  const auto producer = with->another_database();
  const auto took = with->emit(*producer, count);
  bench::add_latencies(reports, "postgres_notified", "the relay woken by NOTIFY", targets, took.ours,
                       took.raw);
  return reports;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
