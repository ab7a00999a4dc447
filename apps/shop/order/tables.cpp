#include "order/order.hpp"

namespace shop {

const std::string_view order_tables = R"sql(
create table if not exists products (
  sku         text primary key,
  name        text not null,
  price_cents bigint not null check (price_cents >= 0),
  in_stock    bigint not null default 0 check (in_stock >= 0),  -- what may still be sold
  received    bigint not null default 0,                        -- all that the warehouse has ever announced
  sales       bigint not null default 0                         -- in orders that were not cancelled
);
create table if not exists carts (
  user_id text primary key,
  version bigint not null  -- whoever changes or orders a cart changes this first, and so locks it
);
create table if not exists cart_items (
  user_id     text not null,
  sku         text not null,
  quantity    bigint not null check (quantity > 0),
  price_cents bigint not null,  -- as the buyer has seen it
  primary key (user_id, sku)
);
-- An attempt to buy, and what became of it: the record of both keys. Whoever comes again, by request or by
-- event, is told the same, also of a refusal.
create table if not exists placements (
  checkout_session_id text primary key,
  user_id             text not null,
  idempotency_key     text not null,
  order_id            text not null default '',
  refusal             text not null default '',
  detail              text not null default '',
  unique (user_id, idempotency_key)
);
create table if not exists orders (
  id                  text primary key,
  user_id             text not null,
  checkout_session_id text not null unique,
  idempotency_key     text not null,
  payment_method      text not null,
  status              text not null,
  total_cents         bigint not null,
  captured_cents      bigint not null default 0,
  refunded_cents      bigint not null default 0,
  cancel_reason       text not null default '',
  created_at          bigint not null,
  pay_until           bigint not null,
  unique (user_id, idempotency_key)
);
create index if not exists orders_unpaid on orders (pay_until)
  where status in ('PENDING_PAYMENT', 'PAYMENT_INITIATED');
create table if not exists order_items (
  order_id    text not null,
  sku         text not null,
  quantity    bigint not null,
  price_cents bigint not null,
  primary key (order_id, sku)
);
create index if not exists order_items_sku on order_items (sku);
)sql";

}  // namespace shop
