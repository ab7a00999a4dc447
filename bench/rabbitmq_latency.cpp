// From the return of commit() to the first line of the handler, on a system that is idle otherwise: the
// service's database and the consumer's on PostgreSQL, RabbitMQ between them, relay and consumer in the
// producer's process.
//
// Raw, in turns with ours: librabbitmq publishes one message to the same kind of queue and takes it from
// there. There is one synced commit more in ours (the relay's tick).
#include "consuming.hpp"
#include "latency_shop.hpp"
#include "raw_rabbitmq.hpp"

namespace {

constexpr bench::latency_targets targets{4, 0};

std::vector<bench::report> run(const bench::options& opts, const std::string& rabbitmq,
                               const std::string& postgres) {
  const std::size_t count = opts.quick ? 20 : 400;
  const bench::raw_group ours(rabbitmq, "bench_ours."), by_hand(rabbitmq, "bench_raw.");
  bench::raw_rabbitmq from(rabbitmq), to(rabbitmq);
  to.consume(by_hand, 1);
  const std::vector one{bench::message_of(1)};
  const auto with = std::make_unique<bench::latency_shop>(postgres, "rabbitmq", ours.open());
  const auto took = with->emit(with->own_database(), count, [&] {
    const auto started = bench::now_ns();
    from.publish(by_hand.exchange(), one, 1);
    to.acknowledge_through(to.next().tag);
    return static_cast<double>(bench::now_ns() - started) / 1e6;
  });
  std::vector<bench::report> reports;
  bench::add_latencies(reports, "rabbitmq_latency", "over RabbitMQ", targets, took.ours, took.raw);
  return reports;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_rabbitmq(argc, argv, run); }
