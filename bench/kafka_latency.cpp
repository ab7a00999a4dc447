// From the return of commit() to the first line of the handler, on a system that is idle otherwise: the
// service's database and the consumer's on PostgreSQL, Kafka between them, relay and consumer in the
// producer's process.
//
// Raw, in turns with ours: librdkafka publishes one message to a topic of the same kind and takes it from
// there. There is one synced commit more in ours (the relay's tick).
#include "consuming.hpp"
#include "latency_shop.hpp"
#include "raw_kafka.hpp"

namespace {

constexpr bench::latency_targets targets{8, 0};

std::vector<bench::report> run(const bench::options& opts, const std::string& kafka,
                               const std::string& postgres) {
  const std::size_t count = opts.quick ? 20 : 400;
  const bench::raw_topic ours(kafka, "bench_ours."), by_hand(kafka, "bench_raw.");
  bench::raw_producer from(by_hand);
  bench::raw_consumer to(by_hand);
  const std::vector one{bench::message_of(1)};
  const auto with = std::make_unique<bench::latency_shop>(postgres, "kafka", ours.open());
  const auto took = with->emit(with->own_database(), count, [&] {
    const auto started = bench::now_ns();
    from.publish(one, 1);
    to.next();
    const auto ended = bench::now_ns();
    to.commit();
    return static_cast<double>(ended - started) / 1e6;
  });
  std::vector<bench::report> reports;
  bench::add_latencies(reports, "kafka_latency", "over Kafka", targets, took.ours, took.raw);
  return reports;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_kafka(argc, argv, run); }
