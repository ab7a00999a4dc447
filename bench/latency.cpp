// From the return of commit() to the first line of the handler, on a system that is idle otherwise: relay
// and consumer in the producer's process, and each in a process of its own.
//
// Raw: the two synced commits that lie in between (the relay's tick, the message into the broker), made by
// one thread with plain SQLite, in turns with ours.
#include <optional>
#include <utility>

#include "latencies.hpp"
#include "processes.hpp"
#include "raw_sqlite.hpp"
#include "service.hpp"
#include "settle/consume.hpp"

namespace {

using namespace std::chrono_literals;
constexpr std::size_t samples_max = 2000;
constexpr bench::latency_targets targets{2, 10};

struct files {
  std::string folder;
  auto outbox() const { return settle::sqlite::open(folder + "/outbox.db"); }
  auto warehouse() const { return settle::sqlite::open(folder + "/warehouse.db"); }
  auto broker() const { return settle::sqlite::open_broker(folder + "/broker.db"); }
  std::string marks() const { return folder + "/marks"; }
};

void create(const files& at) {
  std::filesystem::create_directories(at.folder);
  settle::migrate(*at.outbox());
  bench::open_service(at.folder + "/warehouse.db",
                      "create table shipments (id integer primary key, order_id text not null)");
  at.broker();
}

// The handler's first act is to note the time under the event's number, which is its key.
void handle_with(settle::consumer& consumer, bench::shared_numbers& arrived) {
  consumer.on(bench::topic, bench::type, [&](const settle::message& m, settle::transaction& tx) {
    arrived[static_cast<std::size_t>(std::stoll(m.key))].store(bench::now_ns());
    tx.execute("insert into shipments (order_id) values ($1)", {m.key});
  });
}

// The two synced commits between commit() and handler, by plain SQLite.
class raw_path {
 public:
  explicit raw_path(const std::string& folder)
      : outbox_(folder + "/raw_outbox.db"), broker_(folder + "/raw_broker.db") {
    for (auto* db : {&outbox_, &broker_}) db->run("create table t (id integer primary key, payload text)");
    tick_.emplace(outbox_.prepare("insert into t (payload) values ('tick')"));
    store_.emplace(broker_.prepare("insert into t (payload) values ($1)"));
  }

  void run() {
    const auto started = bench::clock::now();
    tick_->run();
    store_->bind(1, bench::payload()).run();
    milliseconds.push_back(std::chrono::duration<double, std::milli>(bench::clock::now() - started).count());
  }

  std::vector<double> milliseconds;

 private:
  bench::raw_database outbox_;
  bench::raw_database broker_;
  std::optional<bench::raw_statement> tick_;
  std::optional<bench::raw_statement> store_;
};

// Milliseconds per event. The pauses differ, so that they do not fall in step with any timer; the first
// events wait for leases and are not counted.
std::vector<double> emit(const files& at, std::size_t count, raw_path& raw) {
  constexpr std::size_t not_counted = 10;
  const auto outbox = at.outbox();
  bench::shared_numbers arrived(at.marks(), samples_max);
  std::vector<double> latencies;
  for (std::size_t n = 1; n <= count + not_counted; ++n) {
    auto tx = outbox->begin();
    auto event = bench::event_of(0);
    event.key = std::to_string(n);
    settle::publish(tx, event);
    tx.commit();
    const auto committed = bench::now_ns();
    bench::await(arrived[n]);
    const auto took = static_cast<double>(arrived[n].load() - committed) / 1e6;
    if (n > not_counted) latencies.push_back(std::max(took, 0.0));
    std::this_thread::sleep_for(2ms + 1ms * (n * 7 % 11));
    raw.run();
    std::this_thread::sleep_for(2ms);
  }
  return latencies;
}

std::vector<double> in_one_process(const files& at, std::size_t count, raw_path& raw) {
  const auto outbox = at.outbox();
  const auto broker = at.broker();
  const auto warehouse = at.warehouse();
  bench::shared_numbers arrived(at.marks(), samples_max);
  settle::relay relay(*outbox, broker->publishing());
  settle::consumer consumer(*warehouse, *broker, {.name = "warehouse"});
  handle_with(consumer, arrived);
  const settle::background relaying(relay);
  const settle::background consuming(consumer);
  return emit(at, count, raw);
}

std::vector<double> across_processes(const files& at, std::size_t count, raw_path& raw) {
  bench::child relay({"relay", at.folder});
  bench::child consumer({"consumer", at.folder});
  auto latencies = emit(at, count, raw);
  consumer.stop();
  relay.stop();
  return latencies;
}

void run_child(const bench::options& opts) {
  const bench::stop_signal stop;
  const files at{opts.role.at(1)};
  const auto broker = at.broker();
  if (opts.role.at(0) == "relay") {
    const auto outbox = at.outbox();
    settle::relay relay(*outbox, broker->publishing());
    const settle::background relaying(relay);
    stop.wait();
  } else {
    const auto warehouse = at.warehouse();
    bench::shared_numbers arrived(at.marks(), samples_max);
    settle::consumer consumer(*warehouse, *broker, {.name = "warehouse"});
    handle_with(consumer, arrived);
    const settle::background consuming(consumer);
    stop.wait();
  }
}

void run(const bench::options& opts) {
  const std::size_t count = opts.quick ? 20 : 400;
  const files one{opts.folder / "one"};
  const files several{opts.folder / "several"};
  create(one);
  create(several);
  raw_path raw(opts.folder);
  std::vector<bench::report> reports;
  const auto within = in_one_process(one, count, raw);
  bench::add_latencies(reports, "latency_one_process", "all in one process", targets, within,
                       std::exchange(raw.milliseconds, {}));
  const auto across = across_processes(several, count, raw);
  bench::add_latencies(reports, "latency_processes", "producer, relay and consumer in three processes",
                       targets, across, raw.milliseconds);
  bench::write(opts, reports);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run, run_child); }
