// What docs/guides/webhooks.md quotes: a payment webhook applied in one transaction, and the same by a
// worker.
//
// Usage: webhooks <folder>      an existing, empty folder for the database file
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "settle/database.hpp"
#include "settle/event.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "settle/webhook.hpp"

namespace {

// [snippet: webhook_handler]
settle::webhook::answer record_payment(const settle::webhook::received& event, settle::transaction& tx) {
  if (tx.execute("select 1 from orders where id = $1", {event.key}).empty())
    return settle::webhook::answer::not_yet;  // the order is not here yet
  // The row lock on the order keeps others of this order out until we commit.
  const auto changed =
      tx.execute("update orders set status = 'PAID' where id = $1 and status = 'PENDING'", {event.key});
  tx.execute("insert into payments (order_id, gateway_transaction_id) values ($1, $2)",
             {event.key, event.id});
  // An order that was paid or cancelled before stays so. The money has come, and somebody must give it back.
  const std::string type = changed.affected() == 1 ? "payment.captured" : "payment.unexpected";
  settle::publish(tx, settle::event{.topic = "payments", .type = type, .key = event.key});
  return settle::webhook::answer::done;
}
// [end]

// [snippet: webhook_source]
settle::webhook::source gateway(const std::string& current_secret, const std::string& former_secret) {
  return {.name = "gateway",
          .signature = {.how = settle::webhook::scheme::hmac,
                        .keys = {current_secret, former_secret},  // both fit while keys are changed
                        .header = "X-Gateway-Signature",
                        .prefix = "sha256="},
          .event_id = settle::webhook::in_json{"gateway_transaction_id"},
          .type = settle::webhook::in_json{"type"},
          .key = settle::webhook::in_json{"order.id"},
          .time = settle::webhook::in_json{"occurred_at"}};
}
// [end]

struct http_request {
  std::string signature;
  std::string body;
};

// [snippet: webhook_apply]
int on_webhook(settle::database& db, const settle::webhook::inbox& inbox, const http_request& sent) {
  const auto answer = inbox.apply(
      db, {.headers = {{"X-Gateway-Signature", sent.signature}}, .body = sent.body}, record_payment);
  return answer.status;  // and an empty body: the sender learns nothing else
}
// [end]

// [snippet: webhook_receive]
int on_webhook_later(settle::database& db, const settle::webhook::inbox& inbox, const http_request& sent) {
  return inbox.receive(db, {.headers = {{"X-Gateway-Signature", sent.signature}}, .body = sent.body}).status;
}
// [end]

void add_handlers(settle::webhook::worker& worker) {
  // [snippet: webhook_worker]
  worker.on("gateway", "payment.captured", record_payment);
  worker.on("gateway", "", settle::webhook::forward_to("gateway"));  // every other type, as an event
  // [end]
}

int number(settle::database& db, std::string_view sql) {
  return static_cast<int>(db.read().execute(sql)[0][0].integer());
}

int webhooks(const std::string& folder) {
  auto db = settle::sqlite::open(folder + "/orders.db");
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute("create table orders (id text primary key, status text not null)");
  tx.execute("create table payments (order_id text not null, gateway_transaction_id text not null)");
  tx.execute("insert into orders values ('1', 'PENDING'), ('2', 'PENDING')");
  tx.commit();

  // Signed with the secret "former", over exactly these bytes.
  const http_request first{
      "sha256=c5e5dea03984284c462d30965cb7df831c15b9f5f15be09c4321d77062dd94ef",
      R"({"gateway_transaction_id":"gw-1","type":"payment.captured","order":{"id":"1"}})"};
  const http_request second{
      "sha256=f13fec6e9ab4bee5cd085da52d3024d0e7afb8f0303de29bc98d39906f07cd4a",
      R"({"gateway_transaction_id":"gw-2","type":"payment.captured","order":{"id":"2"}})"};
  // Another payment for the first order, and one for an order that is not here yet.
  const http_request unexpected{
      "sha256=080b296085120b8b4a272de943b57b572642599e2467ba49bb08c3451a223e11",
      R"({"gateway_transaction_id":"gw-3","type":"payment.captured","order":{"id":"1"}})"};
  const http_request early{
      "sha256=7ddbf3ad6118047f132c774cc8204ab6ac1476d4db27c14d4b9185ded3707d0c",
      R"({"gateway_transaction_id":"gw-4","type":"payment.captured","order":{"id":"9"}})"};
  const settle::webhook::inbox inbox(gateway("current", "former"));
  const std::vector<int> answers = {on_webhook(*db, inbox, first),
                                    on_webhook(*db, inbox, first),
                                    on_webhook(*db, inbox, {first.signature, second.body}),
                                    on_webhook_later(*db, inbox, second),
                                    on_webhook_later(*db, inbox, second),
                                    on_webhook(*db, inbox, unexpected),
                                    on_webhook(*db, inbox, early)};
  settle::webhook::worker worker(*db);
  add_handlers(worker);
  while (worker.run_once()) {
  }
  for (const int one : answers) std::printf("%d ", one);
  std::printf("\n");
  const bool right =
      answers == std::vector{200, 200, 401, 200, 200, 200, 200} &&
      number(*db, "select count(*) from payments") == 3 &&
      number(*db, "select count(*) from settle_outbox_events") == 3 &&
      number(*db, "select count(*) from settle_webhook_events where status = 'APPLIED'") == 3 &&
      number(*db, "select count(*) from settle_webhook_events where status = 'PARKED'") == 1;
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: webhooks <folder>\n");
    return 2;
  }
  try {
    return webhooks(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "webhooks: %s\n", e.what());
    return 1;
  }
}
