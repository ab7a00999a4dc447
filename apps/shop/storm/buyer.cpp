#include "storm/buyer.hpp"

#include <thread>

#include "json.hpp"
#include "service.hpp"

namespace shop {
namespace {

const settle::retry_options hurried{.attempts_max = 400,
                                    .deadline = std::chrono::seconds(90),
                                    .first_wait = std::chrono::milliseconds(20),
                                    .wait_max = std::chrono::milliseconds(500)};

http_client::port_finder to(const config& of, const char* service) {
  return [&of, service] { return port_of(of, service); };
}

}  // namespace

void buyer_report::add(const buyer_report& other) {
  actions += other.actions;
  attempts += other.attempts;
  hung_up += other.hung_up;
  double_clicks += other.double_clicks;
  for (const auto& [code, times] : other.refusals) refusals[code] += times;
  order_ids.insert(order_ids.end(), other.order_ids.begin(), other.order_ids.end());
  unknown += other.unknown;
  cancelled += other.cancelled;
  complaints.insert(complaints.end(), other.complaints.begin(), other.complaints.end());
}

buyer::buyer(const buyer_settings& with, int number)
    : with_(with),
      number_(number),
      user_(name_of(number)),
      orders_(to(with.of, "order")),
      checkout_(to(with.of, "checkout")),
      impatient_(to(with.of, "order")),
      random_(with.seed * 1'000'003 + static_cast<std::uint64_t>(number)) {}

bool buyer::chance(double part) { return std::uniform_real_distribution<>(0, 1)(random_) < part; }

http_call buyer::call(const std::string& method, const std::string& target, const std::string& body) const {
  return {.method = method, .target = target, .headers = {{"X-User", user_}}, .body = body};
}

// What may be sent again without a key: puts, reads, and what a state decides.
settle::request_answer buyer::until_answered(http_client& to, const http_call& what,
                                             const std::stop_token& stop) {
  const auto send = [&](const auto&, const auto&) { return to.send(what); };
  return settle::retry_request(settle::request_key::make(), send, hurried, {}, stop).answer;
}

bool buyer::fill_cart(const std::stop_token& stop) {
  for (const auto& sku : in_cart_)  // what the shop did not have last time
    if (until_answered(orders_, call("DELETE", "/cart/items/" + sku), stop).status != 200) return false;
  in_cart_.clear();
  const auto items = 1 + static_cast<int>(random_() % 3);
  for (int i = 0; i < items; ++i) {
    const auto sku = "sku-" + std::to_string(random_() % static_cast<std::uint64_t>(with_.products));
    const auto body = "{\"quantity\":" + std::to_string(1 + random_() % 2) + "}";
    in_cart_.push_back(sku);
    if (until_answered(orders_, call("PUT", "/cart/items/" + sku, body), stop).status != 200) return false;
  }
  return true;
}

std::string buyer::begin_checkout(const std::stop_token& stop) {
  const auto key = settle::request_key::make();
  const auto send = [&](const settle::request_key& k, const auto&) {
    auto what = call("POST", "/checkouts", "{}");
    what.headers.emplace_back("Idempotency-Key", k.header());
    return checkout_.send(what);
  };
  const auto done = settle::retry_request(key, send, hurried, {}, stop);
  return done.answer.status == 201 ? read_json(done.answer.body).text("checkout_session_id") : std::string();
}

void buyer::buy(int action, std::stop_token stop) {
  random_.seed(with_.seed * 1'000'003 + static_cast<std::uint64_t>(action) * 7919 + 17);
  ++report_.actions;
  if (!fill_cart(stop)) {
    ++report_.refusals["no_cart"];
    return;
  }
  purchase what{.session = begin_checkout(stop), .key = settle::request_key::make(), .body = ""};
  if (what.session.empty()) {
    ++report_.refusals["no_session"];
    return;
  }
  json_object body;
  body.text("checkout_session_id", what.session);
  what.body = body.done();
  if (chance(0.2))
    order_by_event(what, stop);
  else
    order(what, stop);
}

void buyer::order(const purchase& what, std::stop_token stop) {
  auto request = call("POST", "/orders", what.body);
  request.headers.emplace_back("Idempotency-Key", what.key.header());
  std::jthread second_click;
  if (chance(with_.chaos * 0.5)) {
    ++report_.double_clicks;
    second_click = std::jthread([this, request] { impatient_.send(request); });
  }
  const auto send = [&](const auto&, const auto&) -> settle::request_answer {
    ++report_.attempts;
    if (!chance(with_.chaos * 0.4)) return orders_.send(request);
    ++report_.hung_up;
    orders_.send_and_hang_up(request, chance(0.8));
    return {};
  };
  const auto done = settle::retry_request(what.key, send, hurried, {}, stop);
  const bool decided = done.end == settle::request_end::answered && !done.unsure;
  if (second_click.joinable()) second_click.join();
  be_told(done.answer, decided);
  if (!decided || done.answer.status >= 300) return;
  const auto id = read_json(done.answer.body).text("id");
  look_at_others(id, stop);
  if (chance(0.05)) cancel(id, stop);
}

void buyer::order_by_event(const purchase& what, std::stop_token stop) {
  auto request = call("POST", "/checkouts/" + what.session + "/place", "{}");
  request.headers.emplace_back("Idempotency-Key", what.key.header());
  const auto send = [&](const auto&, const auto&) {
    ++report_.attempts;
    return checkout_.send(request);
  };
  settle::retry_request(what.key, send, hurried, {}, stop);
  if (chance(0.3)) return order(what, stop);  // does not believe it, and clicks on the other button too
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < give_up) {
    const auto answer = until_answered(checkout_, call("GET", "/checkouts/" + what.session), stop);
    if (answer.status != 202) return be_told(answer, answer.status != 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ++report_.unknown;
}

void buyer::be_told(const settle::request_answer& answer, bool decided) {
  if (!decided) {
    ++report_.unknown;
    return;
  }
  const auto body = read_json(answer.body);
  const auto code = body.text("code");
  if (answer.status < 300 && code.empty()) {
    report_.order_ids.push_back(body.text("id", body.text("order_id")));
    return;
  }
  ++report_.refusals[code];
  if (answer.status >= 500 || code.empty())
    report_.complaints.push_back("was told " + std::to_string(answer.status) + " " + code);
}

void buyer::look_at_others(const std::string& order_id, const std::stop_token& stop) {
  auto curious = call("GET", "/orders/" + order_id);
  curious.headers = {{"X-User", "somebody-else"}};
  const auto answer = until_answered(orders_, curious, stop);
  if (answer.status != 404 && answer.status != 0)
    report_.complaints.push_back("somebody else could read order " + order_id);
}

void buyer::cancel(const std::string& order_id, const std::stop_token& stop) {
  if (until_answered(orders_, call("POST", "/orders/" + order_id + "/cancel"), stop).status == 200)
    ++report_.cancelled;
}

}  // namespace shop
