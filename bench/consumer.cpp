// The consumer: a claim and one insert per message, in batches, against inserting the same two rows in
// batches of the same size with plain SQLite.
#include "harness.hpp"
#include "raw_sqlite.hpp"
#include "service.hpp"
#include "settle/consume.hpp"
#include "settle/ids.hpp"

namespace {

constexpr std::int64_t batch = 64;  // consumer_options::batch_max
constexpr double target = 0.5;
constexpr const char* shipments = "create table shipments (id integer primary key, order_id text not null)";
constexpr const char* insert_shipment = "insert into shipments (order_id) values ($1)";

settle::message message_of(std::int64_t number) {
  settle::message m;
  m.id = settle::system_ids().next_as<settle::event_id>().text();
  m.source = "settle:0123456789abcdef0123456789abcdef";
  m.type = bench::type;
  m.topic = bench::topic;
  m.key = bench::key_of(number);
  m.subject = m.key;
  m.content_type = "application/json";
  m.extensions["sequence"] = std::to_string(number);
  m.payload = bench::payload();
  return m;
}

void fill_broker(settle::publisher& to, std::int64_t messages) {
  for (std::int64_t done = 0; done < messages;) {
    std::vector<settle::message> some;
    for (std::int64_t n = 0; n < 500 && done < messages; ++n, ++done) some.push_back(message_of(done));
    for (const auto& result : to.publish(some))
      if (result.status != settle::publish_status::confirmed) throw std::runtime_error(result.reason);
  }
}

class raw_consumer {
 public:
  explicit raw_consumer(const std::string& path) : db_(path) {}

  void insert(std::int64_t messages) {
    for (std::int64_t done = 0; done < messages;) {
      db_.begin();
      for (std::int64_t n = 0; n < batch && done < messages; ++n, ++done) {
        const auto id = settle::system_ids().next_as<settle::event_id>().text();
        claim_.bind(1, "warehouse").bind(2, id).bind(3, bench::topic).bind(4, bench::type);
        claim_.bind(5, 1'700'000'000'000'000 + done).run();
        const auto key = bench::key_of(done);
        insert_.bind(1, key).run();
      }
      db_.commit();
    }
  }

 private:
  bench::raw_database db_;
  bench::raw_statement claim_ = db_.prepare(
      "insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at)"
      " values ($1, $2, $3, $4, $5) on conflict do nothing");
  bench::raw_statement insert_ = db_.prepare(insert_shipment);
};

void run(const bench::options& opts) {
  const std::string folder = opts.folder;
  const std::int64_t messages = batch * (opts.quick ? 10 : 48);
  const auto warehouse = bench::open_service(folder + "/warehouse.db", shipments);
  bench::open_service(folder + "/raw.db", shipments).reset();
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::consumer consumer(*warehouse, *broker, {.name = "warehouse"});
  consumer.on(bench::topic, bench::type, [](const settle::message& m, settle::transaction& tx) {
    tx.execute(insert_shipment, {m.key});
  });
  raw_consumer raw(folder + "/raw.db");

  const auto turns = bench::take_turns(
      opts.quick ? 1 : 27,
      [&] {
        fill_broker(broker->publishing(), messages);
        return bench::measure(messages, [&] { bench::drain(consumer); });
      },
      [&] { return bench::measure(messages, [&] { raw.insert(messages); }); });

  auto r = bench::compare(turns, target);
  r.name = "consumer";
  r.what = "claim and one insert per message, batches of 64; raw: the same two rows inserted";
  r.unit = "messages/s";
  bench::write(opts, {r});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
