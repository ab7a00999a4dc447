// The HTTP client against a server of ours and against one that does what it should not.
#include "settle/http_client.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <latch>
#include <mutex>

#include "support/expect_error.hpp"
#include "support/http_world.hpp"
#include "support/own_authority.hpp"
#include "support/stub_server.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace http {
inline void PrintTo(delivery of, std::ostream* out) { *out << to_string(of); }
inline void PrintTo(trouble of, std::ostream* out) { *out << to_string(of); }
}  // namespace http

namespace test {
namespace {

using namespace std::chrono_literals;
using enum http::delivery;
using http::trouble;
using line = stub_server::line;

struct http_clients : http_world {
  http::client_options options() { return {.time_max = 20s, .env = {.log = &log_, .counters = &counters_}}; }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + path;
  }
  static http::client_request post(const std::string& to, const std::string& body = "abc") {
    return {.method = "POST", .url = to, .body = body};
  }
};

void answer_all(line& c) {
  while (const auto asked = c.request()) c.answer("yes");
}

// Proves S6
TEST_F(http_clients, send_what_they_are_told_and_keep_the_connection) {
  start();
  const http::client client(options());
  for (int i = 0; i < 10; ++i) {
    const auto result = client.send(post(url("/slow?x"), "body " + std::to_string(i)));
    ASSERT_EQ(result.how, answered) << result.detail;
    EXPECT_EQ(result.answer.status, 200);
    EXPECT_EQ(result.answer.body, "POST /slow [body " + std::to_string(i) + "]");
    EXPECT_EQ(result.answer.headers.find("content-type"), "text/plain");
  }
  EXPECT_EQ(counters_.value("settle_http_client_connections_total", {}), 1);
  EXPECT_EQ(
      counters_.value("settle_http_client_requests_total", {{"outcome", "answered"}, {"trouble", "none"}}),
      10);
  EXPECT_EQ(client.connections(), 1U);
  client.close_idle();
  EXPECT_EQ(client.connections(), 0U);
  const auto id = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(client.send({.url = url("/trace/7"), .headers = {{"traceparent", id}}}).answer.body.substr(0, 57),
            std::string("7 ") + id);
  EXPECT_EQ(client.send({.method = "HEAD", .url = url("/slow")}).answer.status, 200);
  EXPECT_EQ(client.send({.url = url("/empty")}).answer.status, 204);
  EXPECT_EQ(client.send({.url = url("/nothing")}).answer.status, 404) << "a status is an answer";
  EXPECT_EQ(client.send({.url = url("/close")}).answer.body, "x");
  EXPECT_EQ(client.connections(), 0U) << "that one was closed";
  EXPECT_EQ(client.send(post(url("/big"))).answer.status, 405);
  EXPECT_EQ(client.send({.url = url("/big"), .answer_body_bytes_max = 4 << 20}).answer.body.size(), 4U << 20);
  EXPECT_EQ(client.send({.url = url("/big")}).why, trouble::too_large);
  EXPECT_EQ(client.send(post(url("/slow"), std::string(900'000, 'a'))).answer.body.size(), 900'000U + 13);
}

// Proves S6
TEST_F(http_clients, refuse_what_makes_no_sense_before_anything_is_sent) {
  stub_server stub(answer_all);
  const http::client client(options());
  const auto refused = [&](http::client_request what) { return code_of([&] { client.send(what); }); };
  const auto to = stub.url("/");
  for (const auto& what : {http::client_request{.method = "GE T", .url = to},
                           {.method = "CONNECT", .url = to},
                           {.url = to + "\r\nX: 1"},
                           {.url = "/x"},
                           {.url = to, .headers = {{"X", "a\r\nb"}}},
                           {.url = to, .headers = {{"content-length", "1"}}},
                           {.url = to, .headers = {{"Host", "x"}}},
                           {.url = to, .time_max = 0s}})
    EXPECT_EQ(refused(what), errc::invalid_argument) << what.url;
  EXPECT_EQ(code_of([] { http::client({.connections_max = 0}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { http::client({.time_max = 0s}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { http::client({.ca_file = "/nowhere/ca.pem"}); }), errc::invalid_argument);
  EXPECT_EQ(stub.connections(), 0);
}

// Proves S6
TEST_F(http_clients, know_that_a_request_was_not_sent_where_nobody_listens) {
  const http::client client(options());
  std::string nobody;
  {
    const stub_server gone(answer_all);
    nobody = gone.url("/");
  }
  const auto refused = client.send(post(nobody));
  EXPECT_EQ(refused.how, not_sent);
  EXPECT_EQ(refused.why, trouble::cannot_connect);
  EXPECT_NE(refused.detail.find("refused"), std::string::npos) << refused.detail;
  const auto unnamed = client.send(post("http://nobody.invalid/"));
  EXPECT_EQ(unnamed.how, not_sent);
  EXPECT_TRUE(unnamed.why == trouble::name_not_found || unnamed.why == trouble::late) << unnamed.detail;
  EXPECT_EQ(client.connections(), 0U);
}

// Proves S6
TEST_F(http_clients, do_not_know_what_became_of_a_request_whose_answer_ends_anywhere) {
  for (const std::string whole :
       {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nyes!",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n1\r\n!\r\n0\r\n\r\n"}) {
    std::size_t end = 0;
    bool abruptly = false;
    stub_server stub([&](line& c) {
      c.request();
      c.send(whole.substr(0, end));
      if (abruptly) c.reset();
    });
    const http::client client(options());
    for (const bool how : {false, true}) {
      abruptly = how;
      for (end = 0; end < whole.size(); ++end) {
        const auto result = client.send(post(stub.url("/")));
        ASSERT_EQ(result.how, unknown) << "after " << end << " bytes";
        ASSERT_EQ(result.why, trouble::ended) << result.detail;
      }
    }
    abruptly = false;
    const auto all = client.send(post(stub.url("/")));
    EXPECT_EQ(all.how, answered) << all.detail;
    EXPECT_EQ(all.answer.body, "yes!");
    EXPECT_EQ(stub.requests().size(), 2 * whole.size() + 1) << "each was sent once";
  }
}

// Proves S6
TEST_F(http_clients, take_the_end_of_the_connection_for_that_of_an_answer_without_a_length) {
  stub_server stub([](line& c) {
    c.request();
    c.send("HTTP/1.1 200 OK\r\n\r\nall of it");
  });
  const auto result = http::client(options()).send({.url = stub.url("/")});
  EXPECT_EQ(result.how, answered) << result.detail;
  EXPECT_EQ(result.answer.body, "all of it");
}

// Proves S6
TEST_F(http_clients, end_an_exchange_when_its_time_is_over) {
  stub_server stub([](line& c) {
    c.request();
    c.send("HTTP/1.1 200 OK\r\nContent-Le");
    c.wait_for_end();
  });
  const http::client client(options());
  auto what = post(stub.url("/"));
  what.time_max = 50ms;
  const auto result = client.send(what);
  EXPECT_EQ(result.how, unknown);
  EXPECT_EQ(result.why, trouble::late);
  what.url.replace(0, 4, "https");  // it never shakes hands
  const auto unsent = client.send(what);
  EXPECT_EQ(unsent.how, not_sent);
  EXPECT_EQ(unsent.why, trouble::late) << unsent.detail;
  EXPECT_EQ(client.connections(), 0U);
}

// Proves S6
TEST_F(http_clients, end_an_exchange_when_they_are_stopped) {
  std::stop_source stop;
  stub_server stub([&](line& c) {
    c.request();
    stop.request_stop();
    c.wait_for_end();
  });
  const http::client client(options());
  const auto result = client.send(post(stub.url("/")), stop.get_token());
  EXPECT_EQ(result.how, unknown);
  EXPECT_EQ(result.why, trouble::stopped);
  stub_server other(answer_all);
  EXPECT_EQ(client.send(post(other.url("/"))).how, answered);
  for (const auto& to : {stub.url("/"), other.url("/")}) {  // a kept connection is not used either
    const auto later = client.send(post(to), stop.get_token());
    EXPECT_EQ(later.how, not_sent);
    EXPECT_EQ(later.why, trouble::stopped);
  }
  EXPECT_EQ(other.requests().size(), 1U);
}

// Proves S6
TEST_F(http_clients, believe_no_answer_that_is_ambiguous_or_too_large) {
  std::mutex mutex;
  std::string said;
  stub_server stub([&](line& c) {
    c.request();
    const auto whole = [&] {  // it may still be at it when the client has seen enough
      const std::scoped_lock lock(mutex);
      return said;
    }();
    c.send(whole);
    c.wait_for_end();
  });
  auto limited = options();
  limited.answer_body_bytes_max = 10;
  limited.answer_head_bytes_max = 1000;
  const http::client client(limited);
  const auto trouble_with = [&](const std::string& answer) {
    {
      const std::scoped_lock lock(mutex);
      said = answer;
    }
    const auto result = client.send(post(stub.url("/")));
    EXPECT_EQ(result.how, unknown);
    return result.why;
  };
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(trouble_with(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), trouble::malformed);
  EXPECT_EQ(trouble_with(ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), trouble::malformed);
  EXPECT_EQ(trouble_with("SSH-2.0-OpenSSH\r\n"), trouble::malformed);
  EXPECT_EQ(trouble_with(ok + "Content-Length: 11\r\n\r\n"), trouble::too_large);
  EXPECT_EQ(trouble_with(ok + "\r\n" + std::string(100'000, 'a')), trouble::too_large);
  EXPECT_EQ(trouble_with(ok + "X: " + std::string(100'000, 'a')), trouble::too_large);
  EXPECT_EQ(client.connections(), 0U);
}

// Proves S6
TEST_F(http_clients, pass_over_what_comes_before_the_answer) {
  stub_server stub([](line& c) {
    while (c.request()) {
      c.send("HTTP/1.1 100 Continue\r\n\r\n");
      c.answer("yes");
    }
  });
  const http::client client(options());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.send(post(stub.url("/"))).answer.body, "yes");
  EXPECT_EQ(stub.connections(), 1);
}

// Proves S6
TEST_F(http_clients, never_take_a_second_answer_for_that_of_the_next_request) {
  stub_server stub([](line& c) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    while (const auto asked = c.request()) c.send(head + asked->substr(6, 1) + head + "!");
  });
  const http::client client(options());
  for (const auto* path : {"/1", "/2", "/3"})
    EXPECT_EQ(client.send(post(stub.url(path))).answer.body, path + 1);
  EXPECT_EQ(stub.connections(), 3);
}

// Proves S6
TEST_F(http_clients, hear_an_answer_that_comes_before_the_whole_request_is_sent) {
  stub_server stub([](line& c) {
    c.read_more();
    c.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!");
    c.wait_for_end();
  });
  const auto result = http::client(options()).send(post(stub.url("/"), std::string(16 << 20, 'a')));
  ASSERT_EQ(result.how, answered) << result.detail;
  EXPECT_EQ(result.answer.status, 413);
}

// Proves S6
TEST_F(http_clients, replace_a_kept_connection_that_was_closed_meanwhile) {
  std::latch closed(1);
  stub_server stub([&](line& c) {
    c.request();
    c.answer("yes");
    if (c.number() > 0) return answer_all(c);
    c.finish();
    closed.count_down();
  });
  const http::client client(options());
  EXPECT_EQ(client.send(post(stub.url("/1"))).how, answered);
  closed.wait();
  EXPECT_EQ(client.send(post(stub.url("/2"))).how, answered);
  EXPECT_EQ(stub.connections(), 2);
  EXPECT_EQ(stub.requests().size(), 2U) << "it was sent once";
}

// Proves S6
TEST_F(http_clients, repeat_only_what_may_arrive_twice_when_a_kept_connection_ends) {
  stub_server stub([](line& c) {
    c.request();
    c.answer("yes");
    c.request();  // and no answer
  });
  const http::client client(options());
  const auto after_another = [&](http::client_request what) {
    client.close_idle();
    EXPECT_EQ(client.send(post(stub.url("/first"))).how, answered);
    const auto before = stub.requests().size();
    const auto result = client.send(what);
    EXPECT_EQ(stub.requests().size() - before, result.how == answered ? 2U : 1U);
    return result.how;
  };
  EXPECT_EQ(after_another(post(stub.url("/"))), unknown);
  EXPECT_EQ(after_another({.method = "DELETE", .url = stub.url("/")}), unknown);
  EXPECT_EQ(after_another({.url = stub.url("/")}), answered);
  auto repeatable = post(stub.url("/"));
  repeatable.repeatable = true;
  EXPECT_EQ(after_another(repeatable), answered);
}

// Proves S6
TEST_F(http_clients, use_no_connection_that_was_idle_for_too_long) {
  stub_server stub(answer_all);
  auto impatient = options();
  impatient.idle_time_max = 0s;
  const http::client client(impatient);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.send({.url = stub.url("/")}).how, answered);
  EXPECT_EQ(stub.connections(), 3);
  EXPECT_LE(client.connections(), 1U);
}

// Proves S6
TEST_F(http_clients, have_at_most_so_many_connections) {
  std::atomic<int> at_once = 0, most = 0;
  gate slow;
  stub_server stub([&](line& c) {
    while (const auto asked = c.request()) {
      const int now = ++at_once;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      if (asked->starts_with("GET /gate")) slow.pass();
      --at_once;
      c.answer("yes");
    }
  });
  stub_server other(answer_all);
  auto few = options();
  few.connections_per_host_max = 2;
  few.connections_max = 3;
  const http::client client(few);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 8; ++i)
      all.emplace_back([&] {
        for (int n = 0; n < 50; ++n) EXPECT_EQ(client.send({.url = stub.url("/")}).how, answered);
      });
  }
  EXPECT_EQ(stub.connections(), 2);
  EXPECT_LE(most, 2);
  std::vector<std::jthread> waiting;
  for (int i = 0; i < 2; ++i)
    waiting.emplace_back([&] { EXPECT_EQ(client.send({.url = stub.url("/gate")}).how, answered); });
  EXPECT_TRUE(slow.wait_for(2));
  const auto none = client.send({.url = stub.url("/"), .time_max = 20ms});
  EXPECT_EQ(none.how, not_sent);
  EXPECT_EQ(none.why, trouble::no_connection_free);
  EXPECT_EQ(client.send({.url = other.url("/")}).how, answered);
  EXPECT_EQ(client.connections(), 3U);
  stub_server third(answer_all);
  EXPECT_EQ(client.send({.url = third.url("/")}).how, answered) << "a kept one makes room";
  EXPECT_EQ(client.connections(), 3U);
  slow.open();
}

// Proves S6
TEST_F(http_clients, follow_no_redirect_and_ask_no_proxy) {
  stub_server elsewhere(answer_all);
  stub_server stub([&](line& c) {
    while (c.request())
      c.send("HTTP/1.1 302 Found\r\nLocation: " + elsewhere.url("/") + "\r\nContent-Length: 0\r\n\r\n");
  });
  for (const auto* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"})
    ::setenv(name, elsewhere.url("").c_str(), 1);
  const auto result = http::client(options()).send({.url = stub.url("/")});
  for (const auto* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) ::unsetenv(name);
  EXPECT_EQ(result.answer.status, 302);
  EXPECT_EQ(elsewhere.connections(), 0);
}

struct secure_http_clients : http_clients {
  secure_http_clients() { authority.write_to(dir.file("ca.pem")); }

  stub_server serving(const std::string& names, std::function<void(line&)> serve = answer_all) {
    return stub_server([context = authority.server(names), serve = std::move(serve)](line& c) {
      if (c.secure(context.get())) serve(c);
    });
  }
  http::client_options trusting() {
    auto made = options();
    made.ca_file = dir.file("ca.pem");
    return made;
  }
  static std::string secure_url(const stub_server& of) { return "https://" + of.host() + "/"; }

  temp_dir dir;
  own_authority authority;
};

// Proves S6
TEST_F(secure_http_clients, speak_with_a_server_that_proves_who_it_is) {
  const auto stub = serving("IP:127.0.0.1,DNS:localhost", [](line& c) {
    while (const auto asked = c.request()) c.answer(std::to_string(asked->size()));
  });
  const http::client client(trusting());
  for (int i = 0; i < 3; ++i) {
    const auto result = client.send(post(secure_url(stub), std::string(600'000, 'a')));
    ASSERT_EQ(result.how, answered) << result.detail;
    EXPECT_GT(std::stoul(result.answer.body), 600'000U);
  }
  EXPECT_EQ(stub.connections(), 1);
  auto by_name = secure_url(stub);
  by_name.replace(8, 9, "localhost");
  EXPECT_EQ(client.send(post(by_name)).how, answered);
}

// Proves S6
TEST_F(secure_http_clients, send_nothing_to_one_that_does_not) {
  const auto stub = serving("DNS:bank.example");
  for (const auto& [options, why] : {std::pair(trusting(), "it has another name"),
                                     std::pair(this->options(), "nobody knows its authority")}) {
    const auto result = http::client(options).send(post(secure_url(stub)));
    EXPECT_EQ(result.how, not_sent) << why;
    EXPECT_EQ(result.why, trouble::tls_refused) << why;
    EXPECT_NE(result.detail.find("verify failed"), std::string::npos) << result.detail;
  }
  stub_server plain([](line& c) { c.send("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  const auto result = http::client(trusting()).send(post(secure_url(plain)));
  EXPECT_EQ(result.how, not_sent);
  EXPECT_EQ(result.why, trouble::tls_refused) << result.detail;
  EXPECT_EQ(stub.requests().size(), 0U);
  auto careless = options();
  careless.verify_server = false;
  EXPECT_EQ(http::client(careless).send(post(secure_url(stub))).how, answered);
}

// Proves S6
TEST_F(secure_http_clients, notice_that_an_answer_was_cut_by_somebody_else) {
  bool properly = false;
  const auto stub = serving("IP:127.0.0.1", [&](line& c) {
    c.request();
    c.send("HTTP/1.1 200 OK\r\n\r\nall of it");
    if (properly) c.say_goodbye();
  });
  const http::client client(trusting());
  EXPECT_EQ(client.send(post(secure_url(stub))).how, unknown);
  properly = true;
  EXPECT_EQ(client.send(post(secure_url(stub))).answer.body, "all of it");
}

}  // namespace
}  // namespace test
}  // namespace settle
