#include "gateway/gateway.hpp"

#include "json.hpp"
#include "settle/request_key.hpp"

namespace shop {

namespace http = settle::http;

const std::string_view gateway_tables = R"sql(
create table if not exists charges (
  key            text primary key,  -- the caller's Idempotency-Key
  txn_id         text not null unique,
  order_id       text not null,
  amount_cents   bigint not null,
  status         text not null check (status in ('AUTHORISED', 'CAPTURED', 'FAILED', 'VOIDED')),
  refunded_cents bigint not null default 0,
  requests       bigint not null default 1  -- how often it was asked for
);
create index if not exists charges_order on charges (order_id);
create table if not exists gateway_refunds (
  key          text primary key,
  order_id     text not null,
  amount_cents bigint not null,
  requests     bigint not null default 1
);
create table if not exists numbers (
  name text primary key,
  last bigint not null
);
insert into numbers (name, last) values ('all', 0) on conflict do nothing;
create table if not exists money (
  id       bigint primary key,
  order_id text not null,
  cents    bigint not null  -- taken from the buyer's card; below zero: given back
);
create table if not exists deliveries (
  id        bigint primary key,
  txn_id    text not null,
  body      text not null,
  forged    bigint not null,
  due_at    bigint not null,
  attempts  bigint not null default 0,
  answered  bigint not null default 0  -- the status that ended it
);
create index if not exists deliveries_due on deliveries (due_at) where answered = 0;
)sql";

namespace {

struct asked_for {
  std::string key, order_id, method;
  std::int64_t amount_cents = 0;
};

asked_for read_call(const http::request& asked) {
  const auto given = read_json(asked);
  const auto header = asked.headers.find("Idempotency-Key");
  const auto key = settle::parse_request_key(header.value_or(""));
  return {.key = key.key ? key.key->text() : std::string(),
          .order_id = given.text("order_id"),
          .method = given.text("method"),
          .amount_cents = given.number("amount_cents")};
}

http::response accepted(std::string_view name, std::string_view id) {
  json_object made;
  made.text(name, id);
  return http::text(202, "application/json", made.done());
}

// Numbers without gaps; and whoever has one is alone until his transaction ends.
std::int64_t next_number(settle::transaction& tx) {
  return tx.execute("update numbers set last = last + 1 where name = 'all' returning last")[0][0].integer();
}

void move_money(settle::transaction& tx, const std::string& order, std::int64_t cents) {
  tx.execute("insert into money (id, order_id, cents) values ($1, $2, $3)", {next_number(tx), order, cents});
}

void deliver(settle::transaction& tx, const std::string& txn, const std::string& body, settle::timestamp due,
             bool forged) {
  tx.execute("insert into deliveries (id, txn_id, body, forged, due_at) values ($1, $2, $3, $4, $5)",
             {next_number(tx), txn, body, forged ? 1 : 0, due});
}

std::string webhook_body(const asked_for& what, const std::string& txn, bool captured) {
  json_object made;
  made.text("type", captured ? "charge.captured" : "charge.failed");
  made.text("gateway_transaction_id", txn);
  made.text("order_id", what.order_id);
  made.number("amount_cents", what.amount_cents);
  if (!captured) made.text("reason", "card_declined");
  return made.done();
}

}  // namespace

gateway_service::gateway_service(const surroundings& with)
    : db_(with.db), of_(with.of), sender_(with.db, with.of) {}

http::response gateway_service::with_moods(const http::request& asked,
                                           http::response (gateway_service::*what)(const http::request&)) {
  const auto fate = call_fate_of(of_.gateway, ++calls_);
  const auto broken = [&] { return http::problem(500, "gateway_error", "try again", asked.path); };
  if (fate.fails) return broken();
  auto made = (this->*what)(asked);
  return fate.loses_answer ? broken() : made;
}

http::response gateway_service::charge(const http::request& asked) {
  const auto what = read_call(asked);
  if (what.key.empty() || what.amount_cents < 1)
    return http::problem(400, "invalid_request", "a key and an amount have to be there", asked.path);
  const auto becomes = fate_of(of_.gateway, what.method, what.key);
  const auto txn = "txn-" + db_.env().ids->next().text();
  const auto* status = becomes.declined ? "FAILED" : becomes.silent ? "AUTHORISED" : "CAPTURED";
  auto tx = db_.begin(asked.cancelled);
  const auto row = tx.execute(
      "insert into charges (key, txn_id, order_id, amount_cents, status) values ($1, $2, $3, $4, $5) "
      "on conflict (key) do update set requests = charges.requests + 1 returning txn_id, requests",
      {what.key, txn, what.order_id, what.amount_cents, status});
  if (row[0][1].integer() > 1) {
    tx.commit();
    return accepted("gateway_transaction_id", row[0][0].text());
  }
  if (!becomes.declined && !becomes.silent) move_money(tx, what.order_id, what.amount_cents);
  const auto body = webhook_body(what, txn, !becomes.declined);
  const auto now = db_.env().now();
  for (int copy = 0; copy < becomes.copies && !becomes.silent; ++copy)
    deliver(tx, txn, body, becomes.late ? now + of_.gateway.late_by : now, false);
  if (becomes.forged)
    deliver(tx, txn, webhook_body({what.key, what.order_id, what.method, 1}, txn, true), now, true);
  tx.commit();
  return accepted("gateway_transaction_id", txn);
}

http::response gateway_service::refund(const http::request& asked) {
  const auto what = read_call(asked);
  auto tx = db_.begin(asked.cancelled);
  const auto row = tx.execute(
      "insert into gateway_refunds (key, order_id, amount_cents) values ($1, $2, $3) "
      "on conflict (key) do update set requests = gateway_refunds.requests + 1 returning requests",
      {what.key, what.order_id, what.amount_cents});
  if (row[0][0].integer() == 1) {
    const auto left = tx.execute(
        "update charges set refunded_cents = refunded_cents + $2 where order_id = $1 and status = 'CAPTURED' "
        "and amount_cents - refunded_cents >= $2 returning key",
        {what.order_id, what.amount_cents});
    if (left.empty()) return http::problem(422, "refund_above_capture", "there is not so much", asked.path);
    move_money(tx, what.order_id, -what.amount_cents);
  }
  tx.commit();
  return accepted("refund_id", what.key);
}

http::response gateway_service::release(const http::request& asked) {
  const auto what = read_call(asked);
  const auto charge = "charge:" + what.order_id;
  auto tx = db_.begin(asked.cancelled);
  // A charge that comes after its void finds this row, and is not made.
  tx.execute(
      "insert into charges (key, txn_id, order_id, amount_cents, status) values ($1, $2, $3, 0, 'VOIDED') "
      "on conflict (key) do nothing",
      {charge, "void-" + what.order_id, what.order_id});
  tx.execute("update charges set status = 'VOIDED' where key = $1 and status = 'AUTHORISED'", {charge});
  const auto now = tx.execute("select status from charges where key = $1", {charge})[0][0].text();
  tx.commit();
  if (now == "CAPTURED") return http::problem(409, "already_captured", "refund it", asked.path);
  return accepted("status", now);
}

void gateway_service::add_routes(http::router& to) {
  to.post("/charges", [this](const auto& asked) { return with_moods(asked, &gateway_service::charge); });
  to.post("/refunds", [this](const auto& asked) { return with_moods(asked, &gateway_service::refund); });
  to.post("/voids", [this](const auto& asked) { return with_moods(asked, &gateway_service::release); });
}

}  // namespace shop
