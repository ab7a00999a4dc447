// Two outbox tables that an application has had for years, relayed as they are.
// docs/guides/existing_tables.md quotes the marked parts; tools/check_snippets compares them.
//
// Usage: existing_tables <conninfo> <folder>      the schema `legacy` of that database is dropped and made
// anew;
//                                                 an existing, empty folder for the broker's file
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "settle/database.hpp"
#include "settle/driver/broker.hpp"
#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"
#include "settle/table_relay.hpp"

namespace {

constexpr const char* legacy_tables = R"sql(
  drop schema if exists legacy cascade;
  create schema legacy;
  create table legacy.order_events (
    id bigserial primary key,
    order_no text not null,
    kind text not null,
    body jsonb not null,
    state text not null default 'NEW',
    sent_at timestamptz,
    tries smallint not null default 0
  );
  create index order_events_waiting on legacy.order_events (id) where state = 'NEW';
  create table legacy.outboxevent (
    id uuid primary key default gen_random_uuid(),
    aggregatetype varchar(255) not null,
    aggregateid varchar(255) not null,
    type varchar(255) not null,
    payload jsonb,
    created_at timestamptz not null default clock_timestamp()
  );
  create index outboxevent_order on legacy.outboxevent (created_at, id);
  insert into legacy.order_events (order_no, kind, body)
  values ('A-1', 'placed', '{"total": 4200}'), ('A-1', 'paid', '{}'), ('A-2', 'placed', '{"total": 100}');
  insert into legacy.outboxevent (aggregatetype, aggregateid, type, payload)
  values ('invoice', '77', 'InvoiceSent', '{"to": "A-1"}');
)sql";

// [snippet: map_status_table]
settle::table_mapping order_events() {
  settle::table_mapping m;
  m.table = "legacy.order_events";
  m.topic.text = "orders";                        // the same for every row
  m.type = {.column = "kind", .text = "order."};  // order.placed, order.paid
  m.aggregate_type.text = "order";
  m.key = "order_no";  // order is kept per order_no
  m.payload = "body";
  m.status = "state";
  m.pending_word = "NEW";
  m.published_word = "SENT";
  m.failed_word = "FAILED";
  m.published_at = "sent_at";
  m.attempts = "tries";
  return m;
}
// [end]

// [snippet: map_debezium_table]
settle::table_mapping debezium_events() {
  auto m = settle::debezium_table("legacy.outboxevent");
  m.order_by = "created_at";  // without it nothing says what came first
  return m;
}
// [end]

void relay_all(settle::service& relay) {
  while (relay.run_once({})) {
  }
  relay.leave();
}

void print(const settle::message& m) {
  std::printf("%s %s %s %s\n", m.topic.c_str(), m.type.c_str(), m.subject.c_str(), m.payload.c_str());
}

int run(const std::string& conninfo, const std::string& folder) {
  const auto db = settle::postgres::open(conninfo);
  settle::migrate(*db);
  {
    auto tx = db->begin();
    tx.execute_script(legacy_tables);
    tx.commit();
  }
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  // [snippet: relay_tables]
  settle::table_relay orders(*db, broker->publishing(), order_events());
  settle::table_relay invoices(*db, broker->publishing(), debezium_events());
  // [end]
  relay_all(orders);
  relay_all(invoices);

  const auto all = broker->subscribe({.group = "show", .topics = {"orders", "outbox.event.invoice"}});
  std::size_t arrived = 0;
  for (auto batch = all->fetch(100); !batch.deliveries.empty(); batch = all->fetch(100))
    for (const auto& one : batch.deliveries) {
      print(one.content);
      ++arrived;
    }
  auto tx = db->read();
  const auto sent =
      tx.execute("select count(*) from legacy.order_events where state = 'SENT'")[0][0].integer();
  const auto left = tx.execute("select count(*) from legacy.outboxevent")[0][0].integer();
  return arrived == 4 && sent == 3 && left == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: existing_tables <conninfo> <folder>\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
