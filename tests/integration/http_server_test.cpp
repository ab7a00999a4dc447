// What well-behaved clients see.
#include <algorithm>

#include "settle/error.hpp"
#include "support/http_world.hpp"

namespace settle {
namespace {

using test::get_of;
using test::post_of;
using test::raw_http;

class http_server : public test::http_world {
 protected:
  http_server() { start(); }
};

TEST_F(http_server, answers_one_request_after_the_other_on_a_connection) {
  auto client = connect();
  for (int n = 0; n < 3; ++n) {
    const auto quick = client.ask(get_of("/quick"));
    EXPECT_EQ(quick.status, 200);
    EXPECT_TRUE(quick.has("Content-Type: text/plain")) << quick.head;
    EXPECT_TRUE(quick.has("X-Content-Type-Options: nosniff"));
    EXPECT_TRUE(quick.has("Date: "));
    EXPECT_FALSE(quick.has("Connection:"));
    EXPECT_EQ(client.ask(post_of("/slow", "body")).body, "POST /slow [body]");
    EXPECT_EQ(client.ask(get_of("/nowhere")).status, 404);
    EXPECT_EQ(client.ask("DELETE /quick HTTP/1.1\r\nHost: x\r\n\r\n").status, 405);
  }
}

TEST_F(http_server, answers_head_as_get_without_the_body) {
  auto client = connect();
  client.send("HEAD /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto head = client.answer(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: 13")) << head.head;
  EXPECT_EQ(client.ask(get_of("/quick")).body, "GET /quick []") << "nothing of a body came before";
}

TEST_F(http_server, gives_handlers_parameters_trace_and_the_address_of_the_peer) {
  auto client = connect();
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto traced =
      client.ask("GET /trace/a%20b HTTP/1.1\r\nHost: x\r\ntraceparent: " + trace + "\r\n\r\n");
  EXPECT_EQ(traced.body.substr(0, 70), "a b " + trace + " 127.0.0.1:") << traced.body;
  const auto untraced = client.ask("GET /trace/7 HTTP/1.1\r\nHost: x\r\ntraceparent: junk\r\n\r\n");
  EXPECT_EQ(untraced.body.substr(0, 12), "7  127.0.0.1");
}

TEST_F(http_server, closes_when_either_side_says_so) {
  auto client = connect();
  EXPECT_TRUE(
      client.ask("GET /quick HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").has("Connection: close"));
  EXPECT_TRUE(client.ends());
  auto other = connect();
  EXPECT_TRUE(other.ask(get_of("/close")).has("Connection: close"));
  EXPECT_TRUE(other.ends());
}

TEST_F(http_server, answers_a_client_that_has_finished_sending) {
  auto client = connect();
  client.send(get_of("/quick") + get_of("/slow"));
  client.finish();
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_EQ(client.answer().body, "GET /slow []");
  EXPECT_TRUE(client.ends());
}

TEST_F(http_server, sends_large_answers_whole_and_in_order) {
  auto client = connect();
  client.send(get_of("/big") + get_of("/quick") + get_of("/big"));
  EXPECT_EQ(client.answer().body, std::string(4 << 20, 'b'));
  EXPECT_EQ(client.answer().body, "GET /quick []");
  EXPECT_EQ(client.answer().body.size(), std::size_t{4} << 20);
}

TEST_F(http_server, sends_no_body_where_there_can_be_none) {
  auto client = connect();
  const auto empty = client.ask(get_of("/empty"));
  EXPECT_EQ(empty.status, 204);
  EXPECT_FALSE(empty.has("Content-Length")) << empty.head;
  EXPECT_EQ(client.ask(get_of("/quick")).status, 200);
}

TEST_F(http_server, never_sends_a_header_that_would_be_a_second_one) {
  auto client = connect();
  const auto answer = client.ask(get_of("/split"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_FALSE(answer.has("Evil"));
  EXPECT_EQ(log_.count("http_answer_invalid"), 1U);
}

TEST_F(http_server, survives_handlers_that_throw) {
  auto client = connect();
  const auto answer = client.ask(get_of("/throws"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  EXPECT_EQ(log_.count("http_handler_failed route=/throws error=secret"), 1U);
  EXPECT_EQ(client.ask(get_of("/slow")).status, 200);
}

// Proves D7
TEST_F(http_server, counts_and_logs_requests_by_route_method_and_class) {
  {
    auto client = connect();
    for (int n = 0; n < 3; ++n) client.ask(get_of("/trace/" + std::to_string(n)));
    client.ask(get_of("/somewhere/else"));
    client.ask("BREW /quick HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_EQ(eventually_counted("settle_http_closed_connections_total", {}), 1);
  const auto requests = [&](std::string_view route, std::string_view method, std::string_view status) {
    return counters_.value("settle_http_requests_total",
                           {{"route", route}, {"method", method}, {"status", status}});
  };
  EXPECT_EQ(requests("/trace/{id}", "GET", "2xx"), 3);
  EXPECT_EQ(requests("other", "GET", "4xx"), 1);
  EXPECT_EQ(requests("/quick", "other", "4xx"), 1);
  const auto times = counters_.times("settle_http_request_seconds",
                                     {{"route", "/trace/{id}"}, {"method", "GET"}, {"status", "2xx"}});
  EXPECT_EQ(times.count(), 3);
  EXPECT_GT(times.sum(), duration::zero());
  EXPECT_EQ(counters_.value("settle_http_connections_total", {}), 1);
  EXPECT_EQ(log_.count("http_request route=/trace/{id} method=GET status=200"), 3U);
}

TEST_F(http_server, says_when_it_cannot_have_its_address) {
  const auto code_of = [&](const http::server_options& options) {
    try {
      const http::server second(http::router(), options);
    } catch (const error& e) {
      return e.code();
    }
    return errc::cancelled;
  };
  EXPECT_EQ(code_of({.port = server_->port()}), errc::listen_failed);
  EXPECT_EQ(code_of({.address = "example.com"}), errc::invalid_argument);
  EXPECT_EQ(code_of({.worker_threads = 0}), errc::invalid_argument);
  EXPECT_EQ(code_of({.handler_time_max = duration(0)}), errc::invalid_argument);
  EXPECT_EQ(code_of({.answer_headers = {{"X", "a\nb"}}}), errc::invalid_argument);
  const http::server named(http::router(), {.address = "localhost"});
  const http::server v6(http::router(), {.address = "::1"});
  EXPECT_GT(v6.port(), 0);
}

}  // namespace
}  // namespace settle
