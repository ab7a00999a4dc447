// The consumer from RabbitMQ into PostgreSQL, with one insert by the handler, against the slower of two: the
// same two rows per message inserted by hand from librabbitmq, in batches of the same size that are
// acknowledged after their commit; and the same consumer on the embedded broker.
#include "broker_consumer.hpp"
#include "raw_rabbitmq.hpp"
#include "service.hpp"

namespace {

constexpr std::size_t at_once = 500;  // of whoever fills the queues
constexpr double target = 0.7;

class reader {
 public:
  explicit reader(const bench::raw_group& from) : line_(from.url()) {
    line_.consume(from, settle::rabbitmq::options().prefetch);
  }
  bench::raw_rabbitmq::delivered next() {
    auto one = line_.next();
    last_ = one.tag;
    return one;
  }
  void done() { line_.acknowledge_through(last_); }

 private:
  bench::raw_rabbitmq line_;
  std::uint64_t last_ = 0;
};

std::vector<bench::report> run(const bench::options& opts, const std::string& rabbitmq,
                               const std::string& postgres) {
  const std::int64_t messages = bench::consumer_batch * (opts.quick ? 4 : 96);
  const bench::scratch own(postgres, "rabbitmq_consumer");
  bench::create_shipments(own.conninfo());
  const bench::raw_group ours(rabbitmq, "bench_ours."), by_hand(rabbitmq, "bench_raw.");
  const auto broker = ours.open();
  const auto embedded = settle::sqlite::open_broker(opts.folder / "broker.db");
  bench::our_consumer on_rabbitmq(own.conninfo(), *broker, bench::group);
  bench::our_consumer on_embedded(own.conninfo(), *embedded, "embedded");
  bench::consumer_by_hand<reader> raw(own.conninfo(), by_hand);
  bench::raw_rabbitmq filling(rabbitmq);
  int raw_was_slower = 0, rounds = 0;
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 11,
      [&] {
        filling.publish(ours.exchange(), bench::messages_for(messages), at_once);
        return on_rabbitmq.measure(messages);
      },
      [&] {
        filling.publish(by_hand.exchange(), bench::messages_for(messages), at_once);
        const auto first = raw.measure(messages);
        embedded->publishing().publish(bench::messages_for(messages));
        const auto second = on_embedded.measure(messages);
        raw_was_slower += first.seconds > second.seconds ? 1 : 0;
        ++rounds;
        return first.seconds > second.seconds ? first : second;
      });
  auto r = bench::compare(turns, target);
  r.name = "rabbitmq_consumer";
  r.what =
      "quorum queues to PostgreSQL, record and one posted insert per message, batches of 64; raw: the slower "
      "of librabbitmq with the same two rows and the same consumer on the embedded broker";
  r.unit = "messages/s";
  bench::keep_processor_time_only(r);
  r.counters.push_back({"rounds", static_cast<double>(rounds)});
  r.counters.push_back({"rounds_in_which_librabbitmq_was_slower", static_cast<double>(raw_was_slower)});
  return {r};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_rabbitmq(argc, argv, run); }
