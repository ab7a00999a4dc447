// The relay from PostgreSQL to Kafka with acks=all: against librdkafka fed from memory, the same messages
// with the same headers and settings, as many at once; and against our own relay to a destination that costs
// nothing, which may be the slower of the two.
#include "broker_consumer.hpp"
#include "raw_kafka.hpp"
#include "service.hpp"

namespace {

constexpr std::size_t at_once = 500;  // relay_options::batch_max
constexpr double target = 0.5;
constexpr double own_target = 0.85;

std::vector<bench::report> run(const bench::options& opts, const std::string& kafka,
                               const std::string& postgres) {
  const std::int64_t events = opts.quick ? 1'000 : 20'000;
  const bench::scratch own(postgres, "kafka_relay"), idle(postgres, "kafka_relay_nowhere");
  const bench::raw_topic ours(kafka, "bench_ours."), by_hand(kafka, "bench_raw.");
  const auto db = settle::postgres::open(own.conninfo()), other = settle::postgres::open(idle.conninfo());
  const auto broker = ours.open();
  bench::nowhere nowhere;
  settle::relay relay(*db, broker->publishing()), to_nowhere(*other, nowhere);
  bench::drain(relay);
  bench::drain(to_nowhere);
  bench::raw_connection fill(own.conninfo()), fill_other(idle.conninfo());
  bench::raw_producer raw(by_hand);
  auto in_memory = bench::messages_for(events);
  for (auto& one : in_memory) one.payload = bench::filled_payload();
  std::vector<bench::slice> alone;
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 11,
      [&] {
        bench::fill_outbox(fill, events);
        return bench::measure(events, [&] { bench::drain(relay); });
      },
      [&] {
        bench::fill_outbox(fill_other, events);
        alone.push_back(bench::measure(events, [&] { bench::drain(to_nowhere); }));
        return bench::measure(events, [&] { raw.publish(in_memory, at_once); });
      });
  relay.leave();
  to_nowhere.leave();
  auto r = bench::compare(turns, target);
  r.name = "kafka_relay";
  r.what =
      "outbox on PostgreSQL to a topic with acks=all, batches of 500; raw: librdkafka publishes the same "
      "messages from memory";
  r.unit = "events/s";
  bench::keep_processor_time_only(r);
  alone.erase(alone.begin(), alone.end() - static_cast<std::ptrdiff_t>(turns.ours.size()));
  auto against_ours = bench::compare({turns.ours, alone}, own_target);
  against_ours.name = "kafka_relay_of_own";
  against_ours.what = "the same; raw: our own relay to a destination that costs nothing";
  against_ours.unit = "events/s";
  bench::keep_processor_time_only(against_ours);
  return {r, against_ours};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_kafka(argc, argv, run); }
