// The consumer on SQLite, fed by a broker in memory, against taking the same messages from it and inserting
// the same two rows for each in batches of the same size: a handler for each message, one for whole batches;
// messages that fail; and a million of those that wait and of those that were given up.
#include <boost/json.hpp>

#include "consuming.hpp"
#include "harness.hpp"
#include "raw_consumer.hpp"
#include "service.hpp"
#include "settle/driver/broker.hpp"

namespace {

using bench::batch;

constexpr double each_target = 0.5;
constexpr double batch_target = 0.8;
constexpr double rate_target = 40'000;
constexpr double failing_target = 0.5;
constexpr double full_target = 0.8;

void handle_each(settle::consumer& by) {
  by.on(bench::topic, bench::type, [](const settle::message& m, settle::transaction& tx) {
    tx.execute(bench::insert_shipment, {m.key});
  });
}

void handle_batches(settle::consumer& by) {
  by.on_batch(bench::topic, bench::type,
              [](std::span<const settle::message* const> all, settle::transaction& tx) {
                boost::json::array keys;
                keys.reserve(all.size());
                for (const auto* m : all) keys.emplace_back(m->key);
                tx.execute("insert into shipments (order_id) select value from json_each($1)",
                           {boost::json::serialize(keys)});
              });
}

// A consumer with what it needs, in a file of its own.
struct fed_consumer {
  explicit fed_consumer(const std::string& path) {
    bench::open_service(path, bench::shipments).reset();
    db = settle::sqlite::open(path, {.env = bench::without_log()});
    consumer.emplace(*db, broker, settle::consumer_options{.name = "warehouse"});
  }
  ~fed_consumer() { consumer->leave(); }
  fed_consumer(const fed_consumer&) = delete;
  fed_consumer& operator=(const fed_consumer&) = delete;

  bench::slice measure(std::int64_t messages) {
    bench::fill(broker, messages);
    return bench::measure(messages, [&] { bench::run_until_ended(*consumer, messages); });
  }

  bench::slice measure_failing(std::int64_t messages) {
    for (std::int64_t n = 0; n < messages; ++n) bench::add_failing(broker, n);
    return bench::measure(messages, [&] { bench::run_until_ended(*consumer, messages); });
  }

  std::unique_ptr<settle::database> db;
  bench::memory_broker broker;
  std::optional<settle::consumer> consumer;
};

bench::report against_raw(const bench::options& opts, const std::string& name,
                          void (*add_handler)(settle::consumer&), double target) {
  const std::int64_t messages = batch * (opts.quick ? 4 : 48);
  const std::string path = opts.folder / name;
  fed_consumer ours(path + ".db");
  add_handler(*ours.consumer);
  bench::open_service(path + "_raw.db", bench::shipments).reset();
  bench::raw_consumer raw(path + "_raw.db");
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 41, [&] { return ours.measure(messages); },
      [&] {
        bench::memory_broker broker;
        bench::fill(broker, messages);
        const auto from = broker.subscribe({});
        return bench::measure(messages, [&] { raw.insert_all(*from); });
      });
  auto r = bench::compare(turns, target);
  r.name = name;
  r.unit = "messages/s";
  return r;
}

std::vector<bench::report> without_failures(const bench::options& opts) {
  auto each = against_raw(opts, "consumer_each", handle_each, each_target);
  each.what =
      "from memory: record and one insert per message, batches of 64; raw: the same two rows inserted";
  bench::report rate;
  rate.name = "consumer_each_rate";
  rate.what = "the same without comparison, for machines of the class that the target was set on";
  rate.unit = "messages/s";
  rate.ours = each.ours;
  rate.target = ">= 40000";
  rate.reached = each.ours >= rate_target;
  auto together = against_raw(opts, "consumer_batch", handle_batches, batch_target);
  together.what = "on_batch: one statement for a batch's rows; raw: the same two rows per message inserted";
  return {each, rate, together};
}

// One message in two hundred fails for ever, another fails once and succeeds when it is tried again. They
// fail before they have written anything, as most do that refuse what they are told; or after it, which takes
// their whole batch down.
bench::report failing(const bench::options& opts, bool after_writing) {
  const std::int64_t messages = batch * (opts.quick ? 4 : 2400);
  const std::string name = after_writing ? "consumer_failing_late" : "consumer_failing";
  fed_consumer failing(opts.folder / (name + ".db"));
  bench::failing_handler handler(after_writing);
  failing.consumer->on(bench::topic, bench::type, [&](const settle::message& m, settle::transaction& tx) {
    if (!after_writing) handler.fail_if_told(m);
    tx.execute(bench::insert_shipment, {m.key});
    if (after_writing) handler.fail_if_told(m);
  });
  fed_consumer steady(opts.folder / (name + "_steady.db"));
  handle_each(*steady.consumer);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 9, [&] { return failing.measure_failing(messages); },
      [&] { return steady.measure(messages); });
  auto r = bench::compare(turns, failing_target);
  r.name = name;
  r.what = std::string("one message in 200 fails for ever and one once, ") +
           (after_writing ? "after" : "before") +
           " writing something, until all is applied or given up; in place of raw: the same consumer without "
           "failures";
  r.unit = "messages/s";
  bench::add_failure_counts(r, *failing.consumer);
  return r;
}

void preload(settle::database& db, std::int64_t entries) {
  const std::string series = "with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) ";
  const std::string message =
      "'waiting-' || i, 'settle:0', 'order.placed', 'waiting-' || i, 'application/json', 1700000000000000, "
      "'', "
      "zeroblob(200) from n";
  auto tx = db.begin();
  tx.execute("insert into settle_parked_keys (consumer, topic, message_key, single) " + series +
                 "select 'warehouse', 'orders', 'waiting-' || i, '' from n",
             {entries});
  tx.execute(
      "insert into settle_parked_messages (consumer, topic, message_key, single, attempts, history, log, "
      "position, "
      "message_id, source, event_type, subject, content_type, event_time, extensions, payload) " +
          series + "select 'warehouse', 'orders', 'waiting-' || i, '', 0, '[]', 'orders/0', i, " + message,
      {entries});
  tx.execute(
      "insert into settle_dlq_events (consumer, consumer_version, reason, error, attempts, history, "
      "failed_at, "
      "blocks_key, topic, message_key, log, position, message_id, source, event_type, subject, content_type, "
      "event_time, extensions, payload) " +
          series +
          "select 'warehouse', '', 'permanent', 'it will never work', 1, '[]', 1700000000000000, 1, "
          "'orders', "
          "'waiting-' || i, 'orders/0', i, " +
          message,
      {entries});
  tx.commit();
}

bench::report with_a_million_waiting(const bench::options& opts) {
  const std::int64_t messages = batch * (opts.quick ? 4 : 96);
  fed_consumer full(opts.folder / "full.db");
  handle_each(*full.consumer);
  preload(*full.db, opts.quick ? 1'000 : 1'000'000);
  fed_consumer empty(opts.folder / "empty.db");
  handle_each(*empty.consumer);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 31, [&] { return full.measure(messages); }, [&] { return empty.measure(messages); });
  auto r = bench::compare(turns, full_target);
  r.name = "consumer_full";
  r.what =
      "a million messages of other keys wait, and a million are dead letters; in place of raw: a consumer "
      "without any";
  r.unit = "messages/s";
  return r;
}

void run(const bench::options& opts) {
  auto reports = without_failures(opts);
  for (const bool after_writing : {false, true}) reports.push_back(failing(opts, after_writing));
  reports.push_back(with_a_million_waiting(opts));
  bench::write(opts, reports);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
