// The consumer: a claim and one insert per message, in batches, against inserting the same two rows in
// batches of the same size with plain SQLite.
#include "consuming.hpp"
#include "harness.hpp"
#include "raw_consumer.hpp"
#include "service.hpp"
#include "settle/driver/broker.hpp"

namespace {

constexpr double target = 0.5;

void fill_broker(settle::publisher& to, std::int64_t messages) {
  for (std::int64_t done = 0; done < messages;) {
    std::vector<settle::message> some;
    for (std::int64_t n = 0; n < 500 && done < messages; ++n, ++done) some.push_back(bench::message_of(done));
    for (const auto& result : to.publish(some))
      if (result.status != settle::publish_status::confirmed) throw std::runtime_error(result.reason);
  }
}

void run(const bench::options& opts) {
  const std::string folder = opts.folder;
  const std::int64_t messages = bench::batch * (opts.quick ? 10 : 48);
  const auto warehouse = bench::open_service(folder + "/warehouse.db", bench::shipments);
  bench::open_service(folder + "/raw.db", bench::shipments).reset();
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::consumer consumer(*warehouse, *broker, {.name = "warehouse"});
  consumer.on(bench::topic, bench::type, [](const settle::message& m, settle::transaction& tx) {
    tx.execute(bench::insert_shipment, {m.key});
  });
  bench::raw_consumer raw(folder + "/raw.db");

  const auto turns = bench::take_turns(
      opts.quick ? 1 : 27,
      [&] {
        fill_broker(broker->publishing(), messages);
        return bench::measure(messages, [&] { bench::drain(consumer); });
      },
      [&] {
        const auto same = bench::delivered(messages);
        return bench::measure(messages, [&] { raw.insert(same); });
      });

  auto r = bench::compare(turns, target);
  r.name = "consumer";
  r.what = "claim and one insert per message, batches of 64; raw: the same two rows inserted";
  r.unit = "messages/s";
  bench::write(opts, {r});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
