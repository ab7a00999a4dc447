#include "notification/notification.hpp"

#include "json.hpp"

namespace shop {

namespace http = settle::http;

// Without a unique key over event or order, on purpose: a mail that was sent twice has to show.
const std::string_view notification_tables = R"sql(
create table if not exists mails (
  id       text primary key,
  event_id text not null,
  to_user  text not null,
  subject  text not null,
  about    text not null
);
create index if not exists mails_to_user on mails (to_user);
)sql";

namespace {

void send(settle::transaction& tx, const settle::message& because, const std::string& user,
          const std::string& subject, const std::string& about) {
  tx.execute("insert into mails (id, event_id, to_user, subject, about) values ($1, $2, $3, $4, $5)",
             {tx.env().ids->next().text(), because.id, user, subject, about});
}

}  // namespace

notification_service::notification_service(const surroundings& with)
    : db_(with.db),
      listener_(with.db, with.broker,
                listening("notification", {std::string(topics::orders), std::string(topics::payments)})) {
  using settle::message;
  using settle::transaction;
  listener_.on<order_paid>([](const order_paid& e, transaction& tx, const message& m) {
    send(tx, m, e.user_id, "order_confirmed", e.order_id);
  });
  listener_.on<order_cancelled>([](const order_cancelled& e, transaction& tx, const message& m) {
    send(tx, m, e.user_id, "order_cancelled", e.order_id);
  });
  listener_.on<placement_refused>([](const placement_refused& e, transaction& tx, const message& m) {
    send(tx, m, e.user_id, "order_refused", e.checkout_session_id);
  });
  listener_.on<payment_refunded>([](const payment_refunded& e, transaction& tx, const message& m) {
    send(tx, m, e.user_id, "refund_sent", e.refund_request_id);
  });
}

void notification_service::add_routes(http::router& to) {
  to.get("/mails", [this](const http::request& asked) {
    const auto user = user_of(asked);
    if (!user) return who_are_you(asked);
    auto tx = db_.read();
    const auto found =
        tx.execute("select subject, about from mails where to_user = $1 order by id limit 1000", {*user});
    std::string all;
    for (std::size_t i = 0; i < found.size(); ++i) {
      json_object one;
      one.text("subject", found[i][0].text());
      one.text("about", found[i][1].text());
      all += (all.empty() ? "" : ",") + one.done();
    }
    return http::text(200, "application/json", "[" + all + "]");
  });
}

}  // namespace shop
