// The consumer from RabbitMQ into PostgreSQL, with one insert by the handler, against the slower of two: the
// same two rows per message inserted by hand from librabbitmq, in batches of the same size that are
// acknowledged after their commit; and the same consumer on the embedded broker.
#include "consuming.hpp"
#include "raw_postgres.hpp"
#include "raw_rabbitmq.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr std::int64_t batch = 64;    // consumer_options::batch_max
constexpr std::size_t at_once = 500;  // of whoever fills the queues
constexpr double target = 0.7;
constexpr settle::query insert_shipment{"insert_shipment", "",
                                        "insert into shipments (order_id) values ($1)"};

std::vector<settle::message> messages_for(std::int64_t count) {
  std::vector<settle::message> all;
  for (std::int64_t n = 0; n < count; ++n) all.push_back(bench::message_of(n));
  return all;
}

// A consumer on some broker, whose messages are waiting when it is measured.
class our_consumer {
 public:
  our_consumer(const std::string& conninfo, settle::broker& from, const std::string& name)
      : db_(settle::postgres::open(conninfo, {.env = bench::without_log()})),
        consumer_(*db_, from, {.name = name}) {
    consumer_.on(bench::topic, bench::type, [](const settle::message& m, settle::transaction& tx) {
      tx.post(insert_shipment, {m.key});
    });
    bench::drain(consumer_);
  }
  ~our_consumer() { consumer_.leave(); }
  our_consumer(const our_consumer&) = delete;
  our_consumer& operator=(const our_consumer&) = delete;

  bench::slice measure(std::int64_t messages) {
    return bench::measure(messages, [&] { bench::run_until_ended(consumer_, messages); });
  }

 private:
  std::unique_ptr<settle::database> db_;
  settle::consumer consumer_;
};

class consumer_by_hand {
 public:
  consumer_by_hand(const std::string& conninfo, const bench::raw_group& from)
      : conn_(conninfo), line_(from.url()) {
    conn_.prepare(
        "claim",
        "insert into settle.processed_events (consumer, message_id, topic, event_type, processed_at)"
        " values ($1, $2, $3, $4, $5) on conflict do nothing");
    conn_.prepare("insert", "insert into shipments (order_id) values ($1)");
    line_.consume(from, settle::rabbitmq::options().prefetch);
  }

  bench::slice measure(std::int64_t messages) {
    return bench::measure(messages, [&] {
      for (std::int64_t done = 0; done < messages;) done += run(std::min(batch, messages - done));
    });
  }

 private:
  std::int64_t run(std::int64_t count) {
    std::vector<bench::raw_connection::call> calls;
    std::uint64_t last = 0;
    for (std::int64_t n = 0; n < count; ++n) {
      const auto one = line_.next();
      last = one.tag;
      calls.push_back({"claim", {"raw", one.id, bench::topic, bench::type, "1700000000000000"}});
      calls.push_back({"insert", {one.key}});
    }
    conn_.run_pipelined(calls);
    line_.acknowledge_through(last);
    return count;
  }

  bench::raw_connection conn_;
  bench::raw_rabbitmq line_;
};

std::vector<bench::report> run(const bench::options& opts, const std::string& rabbitmq,
                               const std::string& postgres) {
  const std::int64_t messages = batch * (opts.quick ? 4 : 96);
  const bench::scratch own(postgres, "rabbitmq_consumer");
  bench::raw_connection(own.conninfo())
      .run(
          "create table shipments (id bigint generated always as identity primary key, order_id text not "
          "null)");
  const bench::raw_group ours(rabbitmq, "bench_ours."), by_hand(rabbitmq, "bench_raw.");
  const auto broker = ours.open();
  const auto embedded = settle::sqlite::open_broker(opts.folder / "broker.db");
  our_consumer on_rabbitmq(own.conninfo(), *broker, bench::group);
  our_consumer on_embedded(own.conninfo(), *embedded, "embedded");
  consumer_by_hand raw(own.conninfo(), by_hand);
  bench::raw_rabbitmq filling(rabbitmq);
  int raw_was_slower = 0, rounds = 0;
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 11,
      [&] {
        filling.publish(ours.exchange(), messages_for(messages), at_once);
        return on_rabbitmq.measure(messages);
      },
      [&] {
        filling.publish(by_hand.exchange(), messages_for(messages), at_once);
        const auto first = raw.measure(messages);
        embedded->publishing().publish(messages_for(messages));
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
