// The consumer: a claim and one insert per message, in batches, against inserting the same two rows in
// batches of the same size with plain SQLite.
#include "harness.hpp"
#include "raw_sqlite.hpp"
#include "settle/consume.hpp"
#include "settle/ids.hpp"
#include "settle/sqlite.hpp"
#include "workload.hpp"

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

std::unique_ptr<settle::database> open_warehouse(const std::string& path) {
  auto db = settle::sqlite::open(path);
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute(shipments);
  tx.commit();
  return db;
}

void run(const bench::options& opts) {
  const std::string folder = opts.folder;
  const std::int64_t messages = batch * (opts.quick ? 10 : 48);
  const auto warehouse = open_warehouse(folder + "/warehouse.db");
  open_warehouse(folder + "/raw.db").reset();
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
        return bench::measure(messages, [&] {
          while (consumer.run_once()) {
          }
        });
      },
      [&] { return bench::measure(messages, [&] { raw.insert(messages); }); });

  bench::report r;
  r.name = "consumer";
  r.what = "claim and one insert per message, batches of 64; raw: the same two rows inserted";
  r.unit = "messages/s";
  r.ours = bench::median_rate(turns.ours);
  r.raw = bench::median_rate(turns.raw);
  r.ratio = bench::median_ratio(turns);
  r.target = "ratio >= 0.5";
  r.reached = *r.ratio >= target;
  bench::add_costs(r, turns);
  bench::write(opts, {r});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
