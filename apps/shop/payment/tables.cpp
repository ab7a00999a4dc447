#include "payment/payments.hpp"

namespace shop {

const std::string_view payment_tables = R"sql(
create table if not exists payments (
  order_id         text primary key,
  user_id          text not null,
  amount_cents     bigint not null,
  method           text not null,
  status           text not null check (status in ('PAYMENT_INITIATED', 'CAPTURED', 'FAILED', 'CANCELLED')),
  gateway_txn_id   text not null default '',
  captured_cents   bigint not null default 0,
  refundable_cents bigint not null default 0 check (refundable_cents >= 0),  -- captured, and no refund has it
  refunded_cents   bigint not null default 0,
  check (refunded_cents <= captured_cents)
);
create table if not exists payment_events (
  gateway_txn_id text primary key,  -- whatever a gateway says of it comes once
  order_id       text not null,
  kind           text not null,
  amount_cents   bigint not null,
  received_at    bigint not null
);
create table if not exists refunds (
  refund_request_id text primary key,
  order_id          text not null,
  amount_cents      bigint not null,
  status            text not null check (status in ('REQUESTED', 'DONE')),
  requested_at      bigint not null
);
create table if not exists gateway_calls (
  id           text primary key,  -- the Idempotency-Key that the gateway honours
  kind         text not null check (kind in ('charge', 'refund', 'void')),
  order_id     text not null,
  method       text not null default '',
  amount_cents bigint not null,
  status       text not null default 'WAITING' check (status in ('WAITING', 'DONE', 'NOT_NEEDED')),
  attempts     bigint not null default 0,
  next_at      bigint not null,
  last_error   text not null default ''
);
create index if not exists gateway_calls_due on gateway_calls (next_at) where status = 'WAITING';
)sql";

}  // namespace shop
