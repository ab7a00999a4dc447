#include <algorithm>
#include <thread>

#include "gateway/gateway.hpp"
#include "settle/webhook_signature.hpp"

namespace shop {
namespace {

constexpr std::int64_t batch_max = 8;  // what is sent and not yet noted is sent again after a kill

settle::duration pause_after(std::int64_t attempts) {
  return std::min<settle::duration>(attempts * attempts * std::chrono::milliseconds(50),
                                    std::chrono::seconds(5));
}

}  // namespace

webhook_sender::webhook_sender(settle::database& db, const config& of)
    : db_(db),
      of_(of),
      first_([of] { return port_of(of, "payment"); }),
      second_([of] { return port_of(of, "payment"); }),
      arrivals_(db.watch()) {}

std::vector<webhook_sender::delivery> webhook_sender::due() {
  auto tx = db_.read();
  const auto found = tx.execute(
      "select id, attempts, body, forged from deliveries where answered = 0 and due_at <= $1 "
      "order by due_at, id limit $2",
      {env().now(), batch_max});
  std::vector<delivery> all;
  for (std::size_t i = 0; i < found.size(); ++i)
    all.push_back(
        {found[i][0].integer(), found[i][1].integer(), found[i][2].text(), found[i][3].integer() != 0});
  return all;
}

int webhook_sender::send(const delivery& what) {
  const settle::webhook::signing signing{.how = settle::webhook::scheme::stripe,
                                         .keys = {what.forged ? "somebody else's" : of_.webhook_secret}};
  const http_call call{.method = "POST",
                       .target = "/webhooks/payment",
                       .headers = settle::webhook::sign(signing, what.body, env().now()),
                       .body = what.body};
  if (what.id % 8 != 0) return first_.send(call).status;
  // Now and then two copies meet: one lock, one effect, two times 200.
  int status = 0;
  std::jthread other([&] { second_.send(call); });
  status = first_.send(call).status;
  return status;
}

bool webhook_sender::run_once(std::stop_token cancel) {
  const auto all = due();
  if (all.empty()) return false;
  std::vector<int> answers;
  for (const auto& one : all) answers.push_back(cancel.stop_requested() ? 0 : send(one));
  auto tx = db_.begin();
  bool any = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool over = answers[i] == 200 || answers[i] == 401;  // nobody sends again what was called forged
    any = any || over;
    tx.execute("update deliveries set attempts = attempts + 1, answered = $2, due_at = $3 where id = $1",
               {all[i].id, over ? answers[i] : 0, env().now() + pause_after(all[i].attempts + 1)});
  }
  tx.commit();
  return any;
}

}  // namespace shop
