#include "payment/caller.hpp"

#include <algorithm>

#include "json.hpp"
#include "settle/request_key.hpp"

namespace shop {
namespace {

constexpr std::int64_t batch_max = 32;
// Whoever has claimed a call and is not heard of any more has perhaps made it. The gateway knows its key.
constexpr settle::duration claim_time = std::chrono::seconds(10);

settle::duration pause_after(std::int64_t attempts) {
  return std::min<settle::duration>(attempts * attempts * std::chrono::milliseconds(50),
                                    std::chrono::seconds(5));
}

}  // namespace

gateway_caller::gateway_caller(settle::database& db, const payments& of, http_client::port_finder gateway)
    : db_(db), payments_(of), http_(std::move(gateway), std::chrono::seconds(2)), arrivals_(db.watch()) {}

bool gateway_caller::run_once(std::stop_token cancel) {
  const auto claimed = claim(cancel);
  std::vector<outcome> made;
  for (const auto& one : claimed) {
    if (cancel.stop_requested()) break;
    made.push_back({one, make(one)});
  }
  if (!made.empty()) note(made);
  return !claimed.empty();
}

std::vector<gateway_call> gateway_caller::claim(const std::stop_token& cancel) {
  const auto now = env().now();
  std::vector<std::string> due;
  {
    auto tx = db_.read();
    const auto found = tx.execute(
        "select id from gateway_calls where status = 'WAITING' and next_at <= $1 order by next_at limit $2",
        {now, batch_max});
    for (std::size_t i = 0; i < found.size(); ++i) due.push_back(found[i][0].text());
  }
  if (due.empty()) return {};
  std::ranges::sort(due);  // two callers lock them in one order
  std::vector<gateway_call> mine;
  auto tx = db_.begin(cancel);
  for (const auto& id : due) {
    const auto got = tx.execute(
        "update gateway_calls set attempts = attempts + 1, next_at = $3 "
        "where id = $1 and status = 'WAITING' and next_at <= $2 "
        "returning kind, order_id, method, amount_cents, attempts",
        {id, now, now + claim_time});
    if (got.empty()) continue;
    mine.push_back({.id = id,
                    .kind = got[0][0].text(),
                    .order_id = got[0][1].text(),
                    .method = got[0][2].text(),
                    .amount_cents = got[0][3].integer(),
                    .attempts = got[0][4].integer()});
  }
  tx.commit("shop.claim_calls");
  return mine;
}

int gateway_caller::make(const gateway_call& what) {
  json_object body;
  body.text("order_id", what.order_id);
  body.text("method", what.method);
  body.number("amount_cents", what.amount_cents);
  return settle::with_fault_points(env(), "shop.gateway_call", [&] {
    return http_
        .send({.method = "POST",
               .target = "/" + what.kind + "s",
               .headers = {{"Idempotency-Key", settle::request_key(what.id).header()}},
               .body = body.done()})
        .status;
  });
}

void gateway_caller::note(const std::vector<outcome>& all) {
  auto tx = db_.begin();
  for (const auto& one : all) {
    // 409 is the answer to a void that comes too late: it was captured, and the webhook says so.
    if ((one.status >= 200 && one.status < 300) || (one.of.kind == "void" && one.status == 409)) {
      payments_.done(tx, one.of);
      continue;
    }
    const auto error = one.status == 0 ? std::string("no answer") : "status " + std::to_string(one.status);
    tx.execute("update gateway_calls set next_at = $2, last_error = $3 where id = $1 and status = 'WAITING'",
               {one.of.id, env().now() + pause_after(one.of.attempts), error});
  }
  tx.commit("shop.note_calls");
}

}  // namespace shop
