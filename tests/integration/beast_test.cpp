// Idempotent requests behind a Boost.Beast server that is not ours.
#include "settle/adapter/beast.hpp"

#include <gtest/gtest.h>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <latch>
#include <thread>

#include "settle/http_once.hpp"
#include "settle/sqlite.hpp"
#include "support/expect_error.hpp"
#include "support/raw_http.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using http::beast_request;

// A thread per connection.
class own_server {
 public:
  explicit own_server(http::handler what) : what_(std::move(what)) {
    accepting_ = std::jthread([this] { accept(); });
  }
  ~own_server() {
    stopping_ = true;
    test::raw_http(port()).finish();  // wakes the acceptor
  }
  std::uint16_t port() const { return listening_.local_endpoint().port(); }

 private:
  void accept() {
    while (true) {
      auto connected = listening_.accept();
      if (stopping_) return;
      sessions_.emplace_back([this, to = std::move(connected)]() mutable { serve(std::move(to)); });
    }
  }
  void serve(tcp::socket to) const {
    beast::flat_buffer buffer;
    for (beast::error_code failed;;) {
      beast_request asked;
      beast::http::read(to, buffer, asked, failed);
      if (failed) return;
      const std::string caller(asked["X-User"]);
      const auto answer =
          http::to_beast(what_(http::from_beast(asked, {.parameters = {{"caller", caller}}})), asked);
      beast::http::write(to, answer, failed);
      if (failed || !answer.keep_alive()) return;
    }
  }

  http::handler what_;
  std::atomic<bool> stopping_ = false;
  asio::io_context io_;
  tcp::acceptor listening_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::vector<std::jthread> sessions_;
  std::jthread accepting_;
};

std::string post(const std::string& key, const std::string& body) {
  return "POST /orders?express=1 HTTP/1.1\r\nHost: shop\r\nX-User: ann\r\nIdempotency-Key: " + key +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Proves I1, I6
TEST(beast_adapter, puts_idempotent_requests_into_a_server_of_ones_own) {
  const test::temp_dir dir;
  const auto db = sqlite::open(dir.file("shop.db"));
  migrate(*db);
  auto tx = db->begin();
  tx.execute("create table orders (what text not null)");
  tx.commit();
  std::latch at_work(1), go_on(1);
  const http::idempotency policy{.service = "shop", .caller = [](const http::request& asked) {
                                   return std::string(asked.parameter("caller"));
                                 }};
  const own_server server(http::idempotent(*db, policy, [&](const http::request& asked, transaction& tx) {
    tx.execute("insert into orders (what) values ($1)", {asked.body});
    if (asked.body == "slow") {
      at_work.count_down();
      go_on.wait();
    }
    auto answer = http::text(201, "text/plain", "ordered " + asked.body);
    answer.headers.set("Location", "/orders/1");
    return answer;
  }));
  test::raw_http client(server.port());  // one connection for all: it is kept alive
  const auto fresh = client.ask(post("k-1", "tea"));
  EXPECT_EQ(fresh.status, 201);
  EXPECT_EQ(fresh.body, "ordered tea");
  EXPECT_TRUE(fresh.has("Idempotent-Replayed: false")) << fresh.head;
  const auto again = client.ask(post("k-1", "tea"));
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, "ordered tea");
  EXPECT_TRUE(again.has("Idempotent-Replayed: true")) << again.head;
  EXPECT_TRUE(again.has("Location: /orders/1")) << again.head;
  const auto other = client.ask(post("k-1", "coffee"));
  EXPECT_EQ(other.status, 422) << other.body;
  EXPECT_TRUE(other.has("application/problem+json")) << other.head;

  test::raw_http slow(server.port());
  slow.send(post("k-2", "slow"));
  at_work.wait();
  const auto early = client.ask(post("k-2", "slow"));
  EXPECT_EQ(early.status, 409) << early.body;
  EXPECT_TRUE(early.has("Retry-After: 1")) << early.head;
  go_on.count_down();
  EXPECT_EQ(slow.answer().status, 201);
  EXPECT_TRUE(client.ask(post("k-2", "slow")).has("Idempotent-Replayed: true"));
  EXPECT_EQ(db->read().execute("select count(*) from orders")[0][0].integer(), 2);
}

TEST(beast_adapter, gives_handlers_the_request_as_it_came) {
  beast_request asked(beast::http::verb::put, "/orders/a%2Fb?full=1", 11, "bytes");
  asked.insert("Link", "<a>");
  asked.insert("Link", "<b>");
  asked.set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  const auto made = http::from_beast(asked, {{{"id", "a/b"}}, "127.0.0.1:5"});
  EXPECT_EQ(made.method, "PUT");
  EXPECT_EQ(made.target, "/orders/a%2Fb?full=1");
  EXPECT_EQ(made.path, "/orders/a%2Fb");
  EXPECT_EQ(made.query_parameter("full"), "1");
  EXPECT_EQ(made.headers.all("link"), (std::vector<std::string_view>{"<a>", "<b>"}));
  EXPECT_EQ(made.body, "bytes");
  EXPECT_EQ(made.parameter("id"), "a/b");
  EXPECT_EQ(made.remote_address, "127.0.0.1:5");
  EXPECT_FALSE(made.trace.traceparent.empty());
  beast_request strange(beast::http::verb::unknown, "*", 10);
  strange.method_string("BREW");
  EXPECT_EQ(http::from_beast(strange).method, "BREW");
}

TEST(beast_adapter, gives_the_server_an_answer_that_it_can_write) {
  beast_request asked(beast::http::verb::get, "/", 11);
  auto answer = http::text(299, "text/plain", "body");
  answer.headers.add("Link", "<a>");
  answer.headers.add("Link", "<b>");
  answer.headers.add("Content-Length", "7");
  const auto made = http::to_beast(answer, asked);
  EXPECT_EQ(made.result_int(), 299u);
  EXPECT_EQ(made.count("Link"), 2u);
  EXPECT_EQ(made["Content-Length"], "4");
  EXPECT_EQ(made.body(), "body");
  EXPECT_TRUE(made.keep_alive());
  answer.headers.set("Connection", "close");
  EXPECT_FALSE(http::to_beast(answer, asked).keep_alive());
  asked.method(beast::http::verb::head);
  EXPECT_EQ(http::to_beast(answer, asked)["Content-Length"], "4");
  EXPECT_EQ(http::to_beast(answer, asked).body(), "");
  asked.method(beast::http::verb::post);
  answer.status = 204;
  EXPECT_EQ(http::to_beast(answer, asked).body(), "");
  asked.version(10);
  EXPECT_EQ(http::to_beast(http::text(200, "text/plain", ""), asked).version(), 10u);
  EXPECT_FALSE(http::to_beast(http::text(200, "text/plain", ""), asked).keep_alive());
}

TEST(beast_adapter, refuses_an_answer_that_would_be_taken_for_another) {
  const beast_request asked(beast::http::verb::get, "/", 11);
  for (const auto& [name, value] : {std::pair("X-Note", "a\r\nSet-Cookie: b"), {"X Note", "a"}, {"", "a"}}) {
    const http::response answer{200, {{name, value}}, ""};
    EXPECT_EQ(test::code_of([&] { http::to_beast(answer, asked); }), errc::invalid_argument) << name;
  }
  EXPECT_EQ(test::code_of([&] { http::to_beast({.status = 101}, asked); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle
