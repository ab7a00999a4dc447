// Events, mails, and what waits for somebody.
#include "events.hpp"

#include <set>

#include "audit/parts.hpp"
#include "settle/dead_letter.hpp"
#include "settle/outbox.hpp"
#include "settle/verify.hpp"
#include "settle/webhook.hpp"

namespace shop {
namespace {

void look_for_dead_letters(finding& into, settle::database& db) {
  for (const auto& one : settle::dead_letters(db, {.status = settle::dead_letter_status::fresh}, 1000))
    into.breach(one.consumer + " has given up " + one.what.type + " of " + one.what.key + ": " + one.error);
  for (const auto& one : settle::failed_events(db))
    into.breach("the broker has rejected " + one.type + " of " + one.key + ": " + one.last_error);
}

}  // namespace

audit_check no_mail_twice(const audited& all) {
  finding made("no_mail_twice");
  auto tx = all.notification.read();
  made.breaches(tx,
                "select 'mail ' || subject || ' about ' || about || ' was sent ' || count(*) || ' times' "
                "from mails group by subject, about having count(*) > 1");
  auto orders = all.order.read();
  const auto wrote =
      by_text(tx, "select about, count(*) from mails where subject = 'order_cancelled' group by about");
  const auto cancelled = orders.execute("select id from orders where status = 'CANCELLED'");
  for (std::size_t i = 0; i < cancelled.size(); ++i)
    if (!wrote.contains(cancelled[i][0].text()))
      made.breach("nobody was told that order " + cancelled[i][0].text() + " is cancelled");
  const auto told =
      by_text(tx, "select about, count(*) from mails where subject = 'order_confirmed' group by about");
  const auto paid = orders.execute("select id from orders where status in ('PROCESSING', 'STOCK_CONFIRMED')");
  for (std::size_t i = 0; i < paid.size(); ++i)
    if (!told.contains(paid[i][0].text()))
      made.breach("nobody was told that order " + paid[i][0].text() + " is paid");
  return made.done(std::to_string(count(tx, "select count(*) from mails")) + " mails, each once");
}

// Every event that is still in an outbox was applied by everybody who has declared that he listens to it.
// Settle's own records cannot tell that: it does not know what a consumer ignores.
std::int64_t look_for_lost(finding& into, const audited& all) {
  const std::map<std::string_view, settle::database*> services = {{"order", &all.order},
                                                                  {"payment", &all.payment},
                                                                  {"warehouse", &all.warehouse},
                                                                  {"checkout", &all.checkout},
                                                                  {"notification", &all.notification}};
  std::map<std::string, std::map<std::string, std::string>> events;  // by type, id and key
  for (const auto& [name, db] : services) {
    auto tx = db->read();
    const auto found =
        tx.execute("select event_type, event_id, aggregate_id from " + settles(*db, "outbox_events"));
    for (std::size_t i = 0; i < found.size(); ++i)
      events[found[i][0].text()][found[i][1].text()] = found[i][2].text();
  }
  std::int64_t lost = 0;
  for (const auto& [service, type] : declared_subscriptions()) {
    auto* db = services.at(service);
    auto tx = db->read();
    const auto found = tx.execute("select message_id from " + settles(*db, "processed_events") +
                                      " where consumer = $1 and event_type = $2",
                                  {service, type});
    std::set<std::string> applied;
    for (std::size_t i = 0; i < found.size(); ++i) applied.insert(found[i][0].text());
    for (const auto& [id, key] : events[std::string(type)])
      if (!applied.contains(id)) {
        ++lost;
        into.breach(std::string(service) + " has not applied " + std::string(type) + " of " + key);
      }
  }
  return lost;
}

audit_check no_event_is_lost(const audited& all, audit_report& into) {
  finding made("no_event_is_lost");
  const auto report = settle::verify(
      {.services = {&all.order, &all.payment, &all.warehouse, &all.checkout, &all.notification, &all.gateway},
       .broker = all.broker.inspection()});
  into.lost += report.lost + report.failed;
  into.doubled += report.doubled + report.ghosts;
  for (const auto& one : report.findings)
    made.breach(one.kind + " for " + one.consumer + ": " + one.subject + " " + one.detail);
  const auto missing = look_for_lost(made, all);
  into.lost += missing;
  if (report.pending != 0)
    made.breach(std::to_string(report.pending) + " events are still on their way; are all services running?");
  return made.done(std::to_string(report.committed) + " events committed, " + std::to_string(report.applied) +
                   " applied by those who listen: " + std::to_string(report.lost + missing) + " lost, " +
                   std::to_string(report.doubled) + " doubled");
}

audit_check nothing_is_stuck(const audited& all) {
  finding made("nothing_is_stuck");
  auto orders = all.order.read();
  made.breaches(orders,
                "select 'order ' || id || ' is still ' || status from orders "
                "where status not in ('PROCESSING', 'CANCELLED')");
  auto payments = all.payment.read();
  made.breaches(payments,
                "select 'the gateway has not confirmed ' || id || ' after ' || attempts || ' attempts: ' || "
                "last_error from gateway_calls where status = 'WAITING'");
  made.breaches(
      payments,
      "select 'refund ' || refund_request_id || ' is not done' from refunds where status <> 'DONE'");
  auto gateway = all.gateway.read();
  made.breaches(gateway, "select 'the gateway cannot deliver ' || body from deliveries where answered = 0");
  made.breaches(gateway,
                "select 'a forged webhook was taken: ' || body from deliveries "
                "where forged = 1 and answered = 200");
  for (auto* db : {&all.order, &all.payment, &all.warehouse, &all.checkout, &all.notification})
    look_for_dead_letters(made, *db);
  for (const auto& one : settle::webhook::list(all.payment, {}))
    made.breach("the webhook " + one.id + " is " + one.status + ": " + one.last_error);
  const auto sent = count(gateway, "select cast(sum(attempts) as bigint) from deliveries");
  const auto forged = count(gateway, "select count(*) from deliveries where forged = 1 and answered = 401");
  return made.done("no order, call, webhook or event waits for anybody; " + std::to_string(sent) +
                   " webhooks were sent, " + std::to_string(forged) + " forged ones refused");
}

}  // namespace shop
