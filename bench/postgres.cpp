// PostgreSQL: what publishing adds to a transaction, and the relay into a destination that costs nothing,
// against a plain loop that reads the same rows. The server is the one that SETTLE_TEST_POSTGRES names (see
// tools/servers); without it nothing is measured.
#include "settle/postgres.hpp"

#include <libpq-fe.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "harness.hpp"
#include "service.hpp"

namespace {

constexpr std::int64_t batch = 1000;
constexpr double relay_target = 0.65;
constexpr double emit_target = 1 / 1.4;  // at most 40 % more

class nowhere final : public settle::publisher {
 public:
  std::vector<settle::publish_result> publish(std::span<const settle::message> messages) override {
    return std::vector<settle::publish_result>(messages.size());
  }
};

struct close_connection {
  void operator()(PGconn* conn) const { PQfinish(conn); }
};
struct clear_result {
  void operator()(PGresult* rows) const { PQclear(rows); }
};
using rows = std::unique_ptr<PGresult, clear_result>;

class raw_connection {
 public:
  explicit raw_connection(const std::string& conninfo) : conn_(PQconnectdb(conninfo.c_str())) {
    run("select 1");
  }

  std::string run(const char* sql) {
    const rows answer(PQexec(conn_.get(), sql));
    const auto status = PQresultStatus(answer.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
      throw std::runtime_error(PQerrorMessage(conn_.get()));
    return PQntuples(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
  }

  // Every row of the outbox in the order of the numbers, in binary.
  std::int64_t read_all(std::int64_t after) {
    constexpr const char* page =
        "select seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers, "
        "created_at, payload from settle.outbox where seq > $1 order by seq limit 1000";
    std::int64_t count = 0;
    if (!prepared_) {
      run("set enable_seqscan = off; set plan_cache_mode = force_generic_plan; set jit = off");
      const rows answer(PQprepare(conn_.get(), "page", page, 1, nullptr));
      prepared_ = true;
    }
    while (true) {
      const auto text = std::to_string(after);
      const char* value = text.c_str();
      const rows answer(PQexecPrepared(conn_.get(), "page", 1, &value, nullptr, nullptr, 1));
      const int found = PQntuples(answer.get());
      if (found == 0) return count;
      count += found;
      after = 0;
      for (int byte = 0; byte < 8; ++byte)
        after = after << 8 | static_cast<unsigned char>(PQgetvalue(answer.get(), found - 1, 0)[byte]);
    }
  }

  std::int64_t number(const char* sql) { return std::stoll(run(sql)); }

 private:
  std::unique_ptr<PGconn, close_connection> conn_;
  bool prepared_ = false;
};

// A database of the bench's own on the server.
class scratch {
 public:
  explicit scratch(const std::string& server) : server_(server) {
    raw_connection admin(server_);
    admin.run("drop database if exists settle_bench with (force)");
    admin.run("create database settle_bench");
  }
  ~scratch() {
    try {
      raw_connection(server_).run("drop database settle_bench with (force)");
    } catch (const std::exception&) {  // it goes with the next run
    }
  }
  std::string conninfo() const { return server_ + " dbname=settle_bench"; }

 private:
  std::string server_;
};

// Faster than to publish them one by one; what the relay reads is the same.
void fill(raw_connection& raw, std::int64_t events) {
  raw.run(("insert into settle.outbox (topic, event_type, aggregate_id, payload) select 'orders', "
           "'order.placed', "
           "'customer-' || (i % 1000), decode(repeat('61', 256), 'hex') from generate_series(1, " +
           std::to_string(events) + ") i")
              .c_str());
}

bench::report measure_relay(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t events = opts.quick ? 2'000 : 200'000;
  const auto db = settle::postgres::open(conninfo);
  nowhere destination;
  settle::relay relay(*db, destination, {.batch_max = batch});
  bench::drain(relay);
  raw_connection raw(conninfo);
  std::int64_t wal = 0, relayed = 0, read_from = 0;
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 5,
      [&] {
        read_from = raw.number("select last_value from settle.outbox_seq");
        fill(raw, events);
        const auto before = raw.number("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
        auto slice = bench::measure(events, [&] { bench::drain(relay); });
        wal += raw.number("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn") - before;
        relayed += events;
        return slice;
      },
      [&] { return bench::measure(events, [&] { raw.read_all(read_from); }); });
  auto r = bench::compare(turns, relay_target);
  r.name = "postgres_relay";
  r.what =
      "outbox on PostgreSQL to nowhere, batches of 1,000; raw: one connection reads the same rows in binary";
  r.unit = "events/s";
  r.counters = {{"wal_bytes_per_event", static_cast<double>(wal) / static_cast<double>(relayed)}};
  return r;
}

bench::report measure_emit(const bench::options& opts, const std::string& conninfo) {
  const auto db = settle::postgres::open(conninfo);
  raw_connection(conninfo).run("create table orders (id bigint primary key, total_cents bigint not null)");
  std::int64_t number = 0;
  const std::int64_t each = opts.quick ? 20 : 200;
  const auto place = [&](bool with_event) {
    return bench::measure(each, [&] {
      for (std::int64_t n = 0; n < each; ++n) {
        auto tx = db->begin();
        tx.execute("insert into orders (id, total_cents) values ($1, $2)", {++number, 4200});
        if (with_event) settle::publish(tx, bench::event_of(number));
        tx.commit();
      }
    });
  };
  const auto turns =
      bench::take_turns(opts.quick ? 1 : 21, [&] { return place(true); }, [&] { return place(false); });
  auto r = bench::compare(turns, emit_target);
  r.name = "postgres_emit";
  r.what = "an order and its event, one client; raw: Settle's transaction with the order alone";
  r.unit = "commits/s";
  r.counters.clear();  // the server writes, not this process
  return r;
}

void run(const bench::options& opts) {
  const char* server = std::getenv("SETTLE_TEST_POSTGRES");
  if (server == nullptr || *server == '\0') return bench::write(opts, {});
  const scratch own(server);
  settle::migrate(*settle::postgres::open(own.conninfo()));
  const auto emitted = measure_emit(opts, own.conninfo());
  bench::write(opts, {emitted, measure_relay(opts, own.conninfo())});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
