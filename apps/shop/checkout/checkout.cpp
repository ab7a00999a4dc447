#include "checkout/checkout.hpp"

#include "json.hpp"
#include "settle/http_once.hpp"
#include "settle/publish.hpp"
#include "settle/request_key.hpp"

namespace shop {

namespace http = settle::http;

const std::string_view checkout_tables = R"sql(
create table if not exists checkout_sessions (
  id       text primary key,
  user_id  text not null,
  status   text not null check (status in ('OPEN', 'REQUESTED', 'ORDERED', 'REFUSED')),
  order_id text not null default '',
  refusal  text not null default ''
);
)sql";

namespace {

struct session {
  std::string status, order_id, refusal;
};

std::optional<session> find(settle::transaction& tx, std::string_view id, const std::string& user) {
  const auto found = tx.execute(
      "select status, order_id, refusal from checkout_sessions where id = $1 and user_id = $2", {id, user});
  if (found.empty()) return std::nullopt;
  return session{found[0][0].text(), found[0][1].text(), found[0][2].text()};
}

http::response unknown(const http::request& asked) {
  return http::problem(404, "checkout_session_unknown", "there is no such checkout session", asked.path);
}

// An order that is under way, or was refused, has its code.
http::response answer_of(std::string_view id, const session& what) {
  json_object made;
  made.text("checkout_session_id", id);
  made.text("status", what.status);
  if (what.status == "REQUESTED") made.text("code", "order_pending");
  if (what.status == "REFUSED") made.text("code", what.refusal);
  if (!what.order_id.empty()) made.text("order_id", what.order_id);
  return http::text(what.status == "REQUESTED" ? 202 : 200, "application/json", made.done());
}

}  // namespace

checkout_service::checkout_service(const surroundings& with)
    : db_(with.db), listener_(with.db, with.broker, listening("checkout", {std::string(topics::orders)})) {
  using settle::transaction;
  listener_.on<order_pending_payment>([](const order_pending_payment& e, transaction& tx) {
    tx.execute("update checkout_sessions set status = 'ORDERED', order_id = $2, refusal = '' where id = $1",
               {e.checkout_session_id, e.order_id});
  });
  listener_.on<placement_refused>([](const placement_refused& e, transaction& tx) {
    tx.execute(
        "update checkout_sessions set status = 'REFUSED', refusal = $2 where id = $1 and order_id = ''",
        {e.checkout_session_id, e.code});
  });
}

void checkout_service::add_routes(http::router& to) {
  const http::idempotency policy{
      .service = "shop.checkout", .caller = user_of, .codes = {.in_flight = "order_pending"}};
  to.post("/checkouts", http::idempotent(db_, policy, [](const auto& asked, auto& tx) -> http::kept_response {
            const auto id = tx.env().ids->next().text();
            tx.execute("insert into checkout_sessions (id, user_id, status) values ($1, $2, 'OPEN')",
                       {id, *user_of(asked)});
            json_object made;
            made.text("checkout_session_id", id);
            made.text("status", "OPEN");
            return http::text(201, "application/json", made.done());
          }));
  // The other way to an order: by event. The key is that of POST /orders, and shared with it.
  to.post("/checkouts/{id}/place",
          http::idempotent(db_, policy, [](const auto& asked, auto& tx) -> http::kept_response {
            const auto given = read_json(asked);
            if (!given.refused.empty()) return {given.problem(asked), settle::keeps::nothing};
            const std::string id(asked.parameter("id"));
            const auto user = *user_of(asked);
            const auto moved = tx.execute(
                "update checkout_sessions set status = 'REQUESTED' where id = $1 and user_id = $2 and "
                "status = 'OPEN' returning id",
                {id, user});
            const auto now = find(tx, id, user);
            if (!now) return unknown(asked);
            if (moved.empty()) return answer_of(id, *now);
            const auto key = settle::parse_request_key(*asked.headers.find("Idempotency-Key"));
            settle::publish(
                tx, placement_requested{.checkout_session_id = id,
                                        .user_id = user,
                                        .idempotency_key = key.key->text(),
                                        .expected_total_cents = given.number("expected_total_cents", -1),
                                        .payment_method = given.text("payment_method", "card")});
            return answer_of(id, *now);
          }));
  to.get("/checkouts/{id}", [this](const http::request& asked) {
    const auto user = user_of(asked);
    if (!user) return who_are_you(asked);
    auto tx = db_.read();
    const auto found = find(tx, asked.parameter("id"), *user);
    return found ? answer_of(asked.parameter("id"), *found) : unknown(asked);
  });
}

}  // namespace shop
