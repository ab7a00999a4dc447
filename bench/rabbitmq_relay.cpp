// The relay from PostgreSQL to quorum queues of RabbitMQ, against librabbitmq fed from memory: the same
// messages with the same headers to queues of the same kind, as many at once, confirmed.
#include "consuming.hpp"
#include "raw_postgres.hpp"
#include "raw_rabbitmq.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr std::size_t at_once = 500;  // relay_options::batch_max
constexpr double target = 0.9;

std::vector<settle::message> messages_for(std::int64_t count) {
  std::vector<settle::message> all;
  for (std::int64_t n = 0; n < count; ++n) {
    all.push_back(bench::message_of(n));
    all.back().payload = bench::filled_payload();
  }
  return all;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& rabbitmq,
                               const std::string& postgres) {
  const std::int64_t events = opts.quick ? 1'000 : 10'000;
  const bench::scratch own(postgres, "rabbitmq_relay");
  const bench::raw_group ours(rabbitmq, "bench_ours."), by_hand(rabbitmq, "bench_raw.");
  const auto db = settle::postgres::open(own.conninfo());
  const auto broker = ours.open();
  settle::relay relay(*db, broker->publishing());
  bench::drain(relay);
  bench::raw_connection raw(own.conninfo());
  bench::raw_rabbitmq line(rabbitmq);
  const auto in_memory = messages_for(events);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 11,
      [&] {
        ours.purge();
        bench::fill_outbox(raw, events);
        return bench::measure(events, [&] { bench::drain(relay); });
      },
      [&] {
        by_hand.purge();
        return bench::measure(events, [&] { line.publish(by_hand.exchange(), in_memory, at_once); });
      });
  relay.leave();
  auto r = bench::compare(turns, target);
  r.name = "rabbitmq_relay";
  r.what =
      "outbox on PostgreSQL to quorum queues, batches of 500; raw: librabbitmq publishes the same messages "
      "from memory";
  r.unit = "events/s";
  bench::keep_processor_time_only(r);
  return {r};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_rabbitmq(argc, argv, run); }
