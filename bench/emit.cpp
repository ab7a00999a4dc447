// Emitting, one client: a business row and its event in one transaction. Against the same two inserts with
// plain SQLite, and against the business row alone.
#include <string>

#include "harness.hpp"
#include "raw_sqlite.hpp"
#include "service.hpp"
#include "settle/ids.hpp"

namespace {

constexpr const char* orders = "create table orders (id text primary key, total_cents integer not null)";
constexpr const char* insert_order = "insert into orders (id, total_cents) values ($1, $2)";

class shop {
 public:
  explicit shop(const std::string& path) : db_(bench::open_service(path, orders)) {}

  void place_order(bool with_event) {
    const auto id = "order-" + std::to_string(++number_);
    auto tx = db_->begin();
    tx.execute(insert_order, {id, 4200});
    if (with_event) settle::publish(tx, bench::event_of(number_));
    tx.commit();
  }

 private:
  std::unique_ptr<settle::database> db_;
  std::int64_t number_ = 0;
};

class raw_shop {
 public:
  explicit raw_shop(const std::string& path) : db_(path) {}

  void place_order() {
    const auto id = "order-" + std::to_string(++number_);
    const auto event_id = settle::system_ids().next_as<settle::event_id>().text();
    const auto key = bench::key_of(number_);
    db_.begin();
    order_.bind(1, id).bind(2, 4200).run();
    event_.bind(1, number_ % 256).bind(2, event_id).bind(3, bench::topic).bind(4, bench::type);
    event_.bind(5, key).bind(6, 1'700'000'000'000'000 + number_).bind_bytes(7, bench::payload()).run();
    db_.commit();
  }

 private:
  bench::raw_database db_;
  bench::raw_statement order_ = db_.prepare(insert_order);
  bench::raw_statement event_ = db_.prepare(
      "insert into settle_outbox (lane, event_id, topic, event_type, aggregate_id, created_at, payload)"
      " values ($1, $2, $3, $4, $5, $6, $7)");
  std::int64_t number_ = 0;
};

void run(const bench::options& opts) {
  const std::string folder = opts.folder;
  const int rounds = opts.quick ? 1 : 61;
  const std::int64_t orders_each = opts.quick ? 20 : 25;
  shop with_events(folder + "/events.db");
  shop rows_alone(folder + "/rows.db");
  bench::open_service(folder + "/raw.db", orders).reset();
  raw_shop raw(folder + "/raw.db");
  const auto repeat = [&](auto&& one) {
    return bench::measure(orders_each, [&] {
      for (std::int64_t n = 0; n < orders_each; ++n) one();
    });
  };
  const auto ours = [&] { return repeat([&] { with_events.place_order(true); }); };

  auto both =
      bench::compare(bench::take_turns(rounds, ours, [&] { return repeat([&] { raw.place_order(); }); }));
  both.name = "emit";
  both.unit = "commits/s";
  both.what = "a row and its event in one transaction, one client; raw: the same two inserts";
  auto alone = bench::compare(
      bench::take_turns(rounds, ours, [&] { return repeat([&] { rows_alone.place_order(false); }); }));
  alone.name = "emit_vs_row_alone";
  alone.unit = both.unit;
  alone.what = "the same; raw: Settle's transaction with the row alone, so the ratio is the event's price";
  bench::write(opts, {both, alone});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
