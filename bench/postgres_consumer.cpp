// The consumer on PostgreSQL, fed by a broker that costs nothing, against inserting the same two rows per
// message in batches of the same size on one connection, pipelined. Then: what it costs the server, by the
// server's own counters; one handler call and one statement per batch; messages that fail; and a million of
// those that wait and of those that were given up.
//
// Handlers post their statements, so they cost no round trip of their own. One that reads something waits for
// it.
#include "consuming.hpp"
#include "harness.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr std::int64_t batch = 64;  // consumer_options::batch_max
constexpr double each_target = 0.5;
constexpr double rate_target = 20'000;
constexpr double batch_target = 0.8;
constexpr double failing_target = 0.5;
constexpr double full_target = 0.8;
constexpr double transactions_target = 0.02;  // per message

constexpr const char* shipments =
    "create table shipments (id bigint generated always as identity primary key, order_id text not null)";
constexpr settle::query insert_shipment{"insert_shipment", "",
                                        "insert into shipments (order_id) values ($1)"};
constexpr settle::query insert_shipments{"insert_shipments", "",
                                         "insert into shipments (order_id) select unnest($1::text[])"};

void handle_each(settle::consumer& by) {
  by.on(bench::topic, bench::type,
        [](const settle::message& m, settle::transaction& tx) { tx.post(insert_shipment, {m.key}); });
}

void handle_batches(settle::consumer& by) {
  by.on_batch(bench::topic, bench::type,
              [](std::span<const settle::message* const> all, settle::transaction& tx) {
                std::vector<std::string> keys;
                keys.reserve(all.size());
                for (const auto* m : all) keys.push_back(m->key);
                tx.post(insert_shipments, {settle::postgres::array(keys)});
              });
}

class raw_consumer {
 public:
  explicit raw_consumer(const std::string& conninfo) : conn_(conninfo) {
    conn_.prepare(
        "claim",
        "insert into settle.processed_events (consumer, message_id, topic, event_type, processed_at)"
        " values ($1, $2, $3, $4, $5) on conflict do nothing");
    conn_.prepare("insert", "insert into shipments (order_id) values ($1)");
    conn_.prepare(
        "claims",
        "insert into settle.processed_events (consumer, message_id, topic, event_type, processed_at)"
        " select $1, id, $3, $4, $5 from unnest($2::text[]) id on conflict do nothing");
    conn_.prepare("inserts", "insert into shipments (order_id) select unnest($1::text[])");
  }

  void insert(std::span<const settle::message> messages) {
    std::vector<bench::raw_connection::call> calls;
    for (std::size_t done = 0; done < messages.size();) {
      calls.clear();
      for (std::int64_t n = 0; n < batch && done < messages.size(); ++n, ++done) {
        const auto& m = messages[done];
        calls.push_back({"claim", {"raw", m.id, m.topic, m.type, time_of(done)}});
        calls.push_back({"insert", {m.key}});
      }
      conn_.run_pipelined(calls);
    }
  }

  // The same rows with one statement for all records of a batch, and one for all rows of the handler.
  void insert_together(std::span<const settle::message> messages) {
    for (std::size_t done = 0; done < messages.size();) {
      std::string ids, keys;
      for (std::int64_t n = 0; n < batch && done < messages.size(); ++n, ++done) {
        ids += (n == 0 ? "{" : ",") + messages[done].id;
        keys += (n == 0 ? "{" : ",") + messages[done].key;
      }
      conn_.run_pipelined({{"claims", {"raw", ids + "}", bench::topic, bench::type, time_of(done)}},
                           {"inserts", {keys + "}"}}});
    }
  }

 private:
  static std::string time_of(std::size_t number) { return std::to_string(1'700'000'000'000'000 + number); }

  bench::raw_connection conn_;
};

// A consumer with what it needs.
struct fed_consumer {
  fed_consumer(const std::string& conninfo, const std::string& name)
      : db(settle::postgres::open(conninfo, {.env = bench::without_log()})),
        consumer(*db, broker, {.name = name}) {}
  ~fed_consumer() { consumer.leave(); }
  fed_consumer(const fed_consumer&) = delete;
  fed_consumer& operator=(const fed_consumer&) = delete;

  bench::slice measure(std::int64_t messages) {
    for (std::int64_t n = 0; n < messages; ++n) broker.add(bench::message_of(n), n);
    return bench::measure(messages, [&] { bench::run_until_ended(consumer, messages); });
  }

  bench::slice measure_failing(std::int64_t messages) {
    for (std::int64_t n = 0; n < messages; ++n) bench::add_failing(broker, n);
    return bench::measure(messages, [&] { bench::run_until_ended(consumer, messages); });
  }

  std::unique_ptr<settle::database> db;
  bench::memory_broker broker;
  settle::consumer consumer;
};

std::vector<bench::report> each(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t messages = batch * (opts.quick ? 4 : 48);
  fed_consumer ours(conninfo, "each");
  handle_each(ours.consumer);
  raw_consumer raw(conninfo);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 41, [&] { return ours.measure(messages); },
      [&] {
        const auto same = bench::delivered(messages);
        return bench::measure(messages, [&] { raw.insert(same); });
      });
  auto r = bench::compare(turns, each_target);
  r.name = "postgres_consumer";
  r.what =
      "record and one posted insert per message, batches of 64; raw: the same two rows inserted, pipelined";
  r.unit = "messages/s";
  bench::keep_processor_time_only(r);
  bench::report rate;
  rate.name = "postgres_consumer_rate";
  rate.what = "the same without comparison, for machines of the class that the target was set on";
  rate.unit = "messages/s";
  rate.ours = r.ours;
  rate.target = ">= 20000";
  rate.reached = r.ours >= rate_target;
  return {r, rate};
}

std::vector<bench::report> together(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t messages = batch * (opts.quick ? 4 : 48);
  fed_consumer ours(conninfo, "together");
  handle_batches(ours.consumer);
  raw_consumer raw(conninfo);
  const auto against = [&](void (raw_consumer::*inserting)(std::span<const settle::message>)) {
    return bench::take_turns(
        opts.quick ? 1 : 41, [&] { return ours.measure(messages); },
        [&] {
          const auto same = bench::delivered(messages);
          return bench::measure(messages, [&] { (raw.*inserting)(same); });
        });
  };
  auto r = bench::compare(against(&raw_consumer::insert), batch_target);
  r.name = "postgres_consumer_batch";
  r.what =
      "on_batch: one statement for a batch's rows; raw: the same two rows per message inserted, pipelined";
  r.unit = "messages/s";
  bench::keep_processor_time_only(r);
  auto best = bench::compare(against(&raw_consumer::insert_together));
  best.name = "postgres_consumer_best";
  best.what = "the same; raw: one statement for a batch's records and one for its rows";
  best.unit = "messages/s";
  bench::keep_processor_time_only(best);
  return {r, best};
}

// Of a consumer from its first connection to its last, with nobody else in the database.
bench::report costs(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t messages = batch * (opts.quick ? 10 : 1000);
  bench::raw_connection raw(conninfo);
  const auto before = bench::count_without_others(raw);
  {
    fed_consumer ours(conninfo, "costs");
    handle_each(ours.consumer);
    ours.measure(messages);
  }
  const auto after = bench::count_without_others(raw);
  const auto per_message = [&](std::int64_t counted) {
    return static_cast<double>(counted) / static_cast<double>(messages);
  };
  bench::report r;
  r.name = "postgres_consumer_commits";
  r.what = "transactions per message, as the server counts them, from the first connection to the last";
  r.unit = "per message";
  r.lower_is_better = true;
  r.ours = per_message(after.transactions - before.transactions);
  r.target = "<= 0.02";
  r.reached = r.ours <= transactions_target;
  r.counters = {{"messages", static_cast<double>(messages)},
                {"syncs_per_message", per_message(after.syncs - before.syncs)},
                {"wal_bytes_per_message", per_message(after.wal_bytes - before.wal_bytes)}};
  return r;
}

// When a handler fails: before it has asked for anything, as most do that refuse what they are told; after it
// has posted, of which nothing was sent; or after it has written and waited for that, which takes its whole
// batch down.
struct failing_moment {
  const char* name;
  const char* text;
  bool is_late;
  bool waits;
  std::int64_t batches;
};
constexpr failing_moment failing_moments[] = {
    {"postgres_consumer_failing", "before writing something", false, false, 900},
    {"postgres_consumer_failing_posted", "after posting something", true, false, 900},
    {"postgres_consumer_failing_late", "after writing something and waiting for it, as all do", true, true,
     300}};

// One message in two hundred fails for ever, another fails once and succeeds when it is tried again.
bench::report failing(const bench::options& opts, const std::string& conninfo, const failing_moment& when) {
  const std::int64_t messages = batch * (opts.quick ? 4 : when.batches);
  const auto write = [&](const settle::message& m, settle::transaction& tx) {
    if (when.waits)
      tx.execute(insert_shipment, {m.key});
    else
      tx.post(insert_shipment, {m.key});
  };
  fed_consumer failing(conninfo, when.name);
  bench::failing_handler handler(when.waits);
  failing.consumer.on(bench::topic, bench::type, [&](const settle::message& m, settle::transaction& tx) {
    if (!when.is_late) handler.fail_if_told(m);
    write(m, tx);
    if (when.is_late) handler.fail_if_told(m);
  });
  fed_consumer steady(conninfo, std::string(when.name) + "_steady");
  steady.consumer.on(bench::topic, bench::type, write);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 9, [&] { return failing.measure_failing(messages); },
      [&] { return steady.measure(messages); });
  auto r = bench::compare(turns, failing_target);
  r.name = when.name;
  r.what = std::string("one message in 200 fails for ever and one once, ") + when.text +
           ", until all is applied or given up; in place of raw: the same consumer without failures";
  r.unit = "messages/s";
  bench::keep_processor_time_only(r);
  bench::add_failure_counts(r, failing.consumer);
  return r;
}

void preload(const std::string& conninfo, std::int64_t entries, const std::string& consumer) {
  bench::raw_connection raw(conninfo);
  const auto from = " from generate_series(1, " + std::to_string(entries) + ") i";
  const auto message =
      "'waiting-' || i, 'settle:0', 'order.placed', 'waiting-' || i, 'application/json', "
      "1700000000000000, '', decode(repeat('61', 200), 'hex')";
  raw.run("insert into settle.parked_keys (consumer, topic, message_key, single) select '" + consumer +
          "', 'orders', 'waiting-' || i, ''" + from);
  raw.run(
      "insert into settle.parked_messages (consumer, topic, message_key, single, attempts, history, log, "
      "position, message_id, source, event_type, subject, content_type, event_time, extensions, payload) "
      "select '" +
      consumer + "', 'orders', 'waiting-' || i, '', 0, '[]', 'orders/0', i, " + message + from);
  raw.run(
      "insert into settle.dlq_events (consumer, consumer_version, reason, error, attempts, history, "
      "failed_at, "
      "blocks_key, topic, message_key, log, position, message_id, source, event_type, subject, content_type, "
      "event_time, extensions, payload) select '" +
      consumer +
      "', '', 'permanent', 'it will never work', 1, '[]', 1700000000000000, true, 'orders', 'waiting-' || i, "
      "'orders/0', i, " +
      message + from);
  for (const char* table : {"parked_keys", "parked_messages", "dlq_events"})
    raw.run(std::string("vacuum analyze settle.") + table);
  raw.run("checkpoint");
}

bench::report with_a_million_waiting(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t messages = batch * (opts.quick ? 4 : 96);
  preload(conninfo, opts.quick ? 1'000 : 1'000'000, "full");
  fed_consumer full(conninfo, "full");
  handle_each(full.consumer);
  fed_consumer empty(conninfo, "empty");
  handle_each(empty.consumer);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 31, [&] { return full.measure(messages); }, [&] { return empty.measure(messages); });
  auto r = bench::compare(turns, full_target);
  r.name = "postgres_consumer_full";
  r.what =
      "a million messages of other keys wait, and a million are dead letters; in place of raw: a consumer "
      "without any";
  r.unit = "messages/s";
  bench::keep_processor_time_only(r);
  return r;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "consumer");
  bench::raw_connection(own.conninfo()).run(shipments);
  auto reports = each(opts, own.conninfo());
  for (auto& one : together(opts, own.conninfo())) reports.push_back(std::move(one));
  reports.push_back(costs(opts, own.conninfo()));
  for (const auto& when : failing_moments) reports.push_back(failing(opts, own.conninfo(), when));
  reports.push_back(with_a_million_waiting(opts, own.conninfo()));
  return reports;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
