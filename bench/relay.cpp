// The relay: from the outbox to the embedded broker, against batched inserts of the same rows into the same
// table with plain SQLite.
#include "harness.hpp"
#include "raw_sqlite.hpp"
#include "service.hpp"

namespace {

constexpr std::int64_t batch = 500;  // relay_options::batch_max
constexpr double target = 0.5;

class raw_broker {
 public:
  explicit raw_broker(const std::string& path) : db_(path) {
    db_.run("insert into broker_topics (name, partitions) values ('orders', 8)");
  }

  // What a row holds is made here as well, except the event's id.
  void insert(std::int64_t messages) {
    for (std::int64_t done = 0; done < messages;) {
      db_.begin();
      for (std::int64_t n = 0; n < batch && done < messages; ++n, ++done) insert_one();
      db_.commit();
    }
  }

 private:
  void insert_one() {
    ++number_;
    const auto key = bench::key_of(number_);
    const auto extensions = R"({"sequence":")" + std::to_string(number_) + "\"}";
    insert_.bind(1, 1)
        .bind(2, number_ % 8)
        .bind(3, "01890000-0000-7000-8000-000000000000")
        .bind(4, "settle:0123456789abcdef0123456789abcdef")
        .bind(5, bench::type)
        .bind(6, key)
        .bind(7, key)
        .bind(8, "application/json")
        .bind(9, 1'700'000'000'000'000 + number_)
        .bind(10, extensions)
        .bind_bytes(11, bench::payload())
        .run();
  }

  bench::raw_database db_;
  bench::raw_statement insert_ = db_.prepare(
      "insert into broker_messages (topic, partition, event_id, source, event_type, key, subject, "
      "content_type,"
      " time, extensions, payload) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
  std::int64_t number_ = 0;
};

void run(const bench::options& opts) {
  const std::string folder = opts.folder;
  const std::int64_t events = opts.quick ? 1'000 : 8'000;
  const auto outbox = settle::sqlite::open(folder + "/outbox.db");
  settle::migrate(*outbox);
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::relay relay(*outbox, broker->publishing());
  settle::sqlite::open_broker(folder + "/raw.db").reset();  // for its schema
  raw_broker raw(folder + "/raw.db");

  const auto turns = bench::take_turns(
      opts.quick ? 1 : 21,
      [&] {
        bench::fill_outbox(*outbox, events);
        return bench::measure(events, [&] { bench::drain(relay); });
      },
      [&] { return bench::measure(events, [&] { raw.insert(events); }); });

  auto r = bench::compare(turns, target);
  r.name = "relay";
  r.what = "outbox to embedded broker, batches of 500; raw: the same rows inserted into the broker's table";
  r.unit = "events/s";
  bench::write(opts, {r});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
