// The consumer from Kafka into PostgreSQL, with one insert by the handler, against the same two rows per
// message inserted by hand from librdkafka, in batches of the same size whose offsets are committed after
// their effects.
#include "broker_consumer.hpp"
#include "raw_kafka.hpp"
#include "service.hpp"

namespace {

constexpr std::size_t at_once = 500;  // of whoever fills the topic
constexpr double target = 0.7;

struct reader : bench::raw_consumer {
  using raw_consumer::raw_consumer;
  void done() { commit(); }
};

std::vector<bench::report> run(const bench::options& opts, const std::string& kafka,
                               const std::string& postgres) {
  const std::int64_t messages = bench::consumer_batch * (opts.quick ? 4 : 96);
  const bench::scratch own(postgres, "kafka_consumer");
  bench::create_shipments(own.conninfo());
  const bench::raw_topic ours(kafka, "bench_ours."), by_hand(kafka, "bench_raw.");
  const auto broker = ours.open();
  bench::our_consumer on_kafka(own.conninfo(), *broker, "warehouse");
  bench::consumer_by_hand<reader> raw(own.conninfo(), by_hand);
  bench::raw_producer to_ours(ours), to_raw(by_hand);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 11,
      [&] {
        to_ours.publish(bench::messages_for(messages), at_once);
        return on_kafka.measure(messages);
      },
      [&] {
        to_raw.publish(bench::messages_for(messages), at_once);
        return raw.measure(messages);
      });
  auto r = bench::compare(turns, target);
  r.name = "kafka_consumer";
  r.what =
      "a topic of 8 partitions to PostgreSQL, record and one posted insert per message, batches of 64; raw: "
      "librdkafka with the same two rows and a commit of offsets per batch";
  r.unit = "messages/s";
  bench::keep_processor_time_only(r);
  return {r};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_kafka(argc, argv, run); }
