// Sagas of three HTTP steps against a participant that only answers, 64 and more in flight: on SQLite, and on
// PostgreSQL where there is one. Beside them the client alone: the same requests with as many threads, which
// no saga can be faster than.
//
// Participant and sagas are two processes that share the machine, as they would not in earnest.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "harness.hpp"
#include "http_load.hpp"
#include "processes.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/http_server.hpp"
#include "settle/http_step.hpp"
#include "settle/postgres.hpp"
#include "settle/saga.hpp"

namespace {

constexpr double target = 1'500;  // sagas per second
constexpr int in_flight = 128;
constexpr int threads = 16;
constexpr int steps = 3;

// A child: `participant PORT`.
void serve(const bench::options& opts) {
  const bench::stop_signal stop;
  settle::http::router routes;
  const auto answer = [](const settle::http::request&) {
    return settle::http::text(200, "text/plain", "charge 17");
  };
  routes.post("/{step}", answer, {.quick = true});
  settle::http::server server(std::move(routes),
                              {.port = static_cast<std::uint16_t>(std::stoi(opts.role.at(1)))});
  stop.wait();
}

auto saga_of_three(const settle::http::client& by, const std::string& at) {
  const auto step = [&](const char* name) {
    return settle::http_post<std::string, std::string>(name, by, at + name)
        .on_unknown(settle::unknown::repeat);
  };
  return settle::saga_of<std::string>("order", 1, step("reserve"), step("charge"), step("ship"));
}

// A host with its database, kept busy.
class sagas {
 public:
  sagas(settle::database& db, const settle::http::client& by, const std::string& at)
      : db_(db),
        type_(saga_of_three(by, at)),
        host_(db, {.name = "bench", .batch_max = in_flight, .call_threads = threads}) {
    host_.add(type_);
  }
  ~sagas() { host_.leave(); }

  void run(std::int64_t count) {
    const auto until = ended() + count;
    for (std::int64_t started = 0; ended() < until;) {
      const auto open = started - (ended() - until + count);
      const auto more = std::min<std::int64_t>(count - started, in_flight - open);
      if (more >= in_flight / 4 || (more > 0 && open < in_flight / 2)) {
        auto tx = db_.begin();
        for (std::int64_t n = 0; n < more; ++n)
          host_.start(tx, type_, "order " + std::to_string(number_++), std::string("42 euros"));
        tx.commit();
        started += more;
      }
      if (!host_.run_once()) host_.arrivals().wait(host_.idle_wait(), {});
    }
  }
  std::int64_t ended() const { return host_.counts().completed; }
  std::int64_t ticks() const { return host_.counts().ticks; }

 private:
  settle::database& db_;
  settle::saga_type<std::string> type_;
  settle::saga_host host_;
  std::int64_t number_ = 0;
};

void ask_alone(const settle::http::client& by, const std::string& at, std::int64_t requests) {
  std::atomic<std::int64_t> left = requests;
  std::vector<std::jthread> all;
  for (int n = 0; n < threads; ++n)
    all.emplace_back([&] {
      while (left-- > 0)
        if (!by.send({.method = "POST", .url = at + "charge", .body = "42 euros"}).answered())
          throw std::runtime_error("the participant does not answer");
    });
}

bench::report measure(const bench::options& opts, settle::database& db, const settle::http::client& by,
                      const std::string& at) {
  const std::int64_t count = opts.quick ? 200 : 1'500;
  sagas ours(db, by, at);
  const auto ticks_before = ours.ticks();
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 9, [&] { return bench::measure(count, [&] { ours.run(count); }); },
      [&] { return bench::measure(count, [&] { ask_alone(by, at, count * steps); }); });
  auto r = bench::compare(turns);
  r.unit = "sagas/s";
  r.target = ">= 1500";
  r.reached = r.ours >= target;
  r.counters.push_back({"ticks per saga", static_cast<double>(ours.ticks() - ticks_before) /
                                              static_cast<double>(ours.ended())});
  return r;
}

void run(const bench::options& opts) {
  const auto port = bench::free_port();
  bench::child participant({"participant", std::to_string(port)});
  const auto at = "http://127.0.0.1:" + std::to_string(port) + "/";
  const settle::http::client by({.connections_per_host_max = threads});
  bench::await_listener(port);

  std::vector<bench::report> reports;
  const std::string folder = opts.folder;
  const auto file = settle::sqlite::open(folder + "/sagas.db");
  settle::migrate(*file);
  reports.push_back(measure(opts, *file, by, at));
  reports.back().name = "saga_http_sqlite";
  reports.back().what = "sagas of three HTTP steps, 128 in flight, on SQLite; raw: their requests alone";
  const char* server = std::getenv("SETTLE_TEST_POSTGRES");
  if (server != nullptr && *server != '\0') {
    const bench::scratch own(server, "saga_http");
    const auto db = settle::postgres::open(own.conninfo());
    reports.push_back(measure(opts, *db, by, at));
    reports.back().name = "saga_http_postgres";
    reports.back().what =
        "sagas of three HTTP steps, 128 in flight, on PostgreSQL; raw: their requests alone";
  }
  bench::write(opts, reports);
  participant.stop();
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run, serve); }
