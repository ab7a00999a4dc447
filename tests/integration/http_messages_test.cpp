// Messages as they should not be, each over a connection of its own: answered rightly, or refused and closed.
#include <boost/json.hpp>
#include <random>

#include "support/http_world.hpp"

namespace settle {
namespace {

using test::get_of;
using test::post_of;

class http_messages : public test::http_world {
 protected:
  http_messages() { start(); }

  void expect_refused(const std::string& bytes, int status, const std::string& code) {
    auto client = connect();
    const auto answer = client.ask(bytes);
    EXPECT_EQ(answer.status, status) << bytes.substr(0, 200);
    EXPECT_TRUE(answer.has("application/problem+json")) << answer.head;
    EXPECT_TRUE(answer.has("Connection: close")) << answer.head;
    if (!answer.body.empty()) {
      EXPECT_EQ(boost::json::parse(answer.body).at("code").as_string(), code) << bytes.substr(0, 200);
    }
    client.finish();
    EXPECT_TRUE(client.ends()) << bytes.substr(0, 200);
  }

  static std::string post_with(const std::string& headers, const std::string& rest) {
    return "POST /quick HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + rest;
  }
};

TEST_F(http_messages, with_two_lengths_are_refused) {
  expect_refused(post_with("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), 400, "length_invalid");
  expect_refused(post_with("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), 400, "length_invalid");
  expect_refused(post_with("Content-Length: 3, 3\r\n", "abc"), 400, "length_invalid");
  expect_refused(post_with("Content-Length: +3\r\n", "abc"), 400, "length_invalid");
  expect_refused(post_with("Content-Length: 0x3\r\n", "abc"), 400, "length_invalid");
  expect_refused(post_with("Content-Length: -1\r\n", ""), 400, "length_invalid");
  expect_refused(post_with("Content-Length:\r\n", ""), 400, "length_invalid");
  expect_refused(post_with("Content-Length: 99999999999999999999\r\n", ""), 400, "length_invalid");
}

TEST_F(http_messages, with_a_length_and_an_encoding_are_refused) {
  const std::string chunks = "3\r\nabc\r\n0\r\n\r\n";
  expect_refused(post_with("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", chunks), 400,
                 "encoding_invalid");
  expect_refused(post_with("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", chunks), 400,
                 "length_invalid");
  expect_refused(post_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunks), 400,
                 "encoding_invalid");
  expect_refused(post_with("Transfer-Encoding: gzip, chunked\r\n", chunks), 501, "encoding_unknown");
  expect_refused(post_with("Transfer-Encoding: chunked, gzip\r\n", chunks), 400, "encoding_invalid");
  expect_refused(post_with("Transfer-Encoding: xchunked\r\n", chunks), 400, "encoding_invalid");
  expect_refused(post_with("Transfer-Encoding: gzip\r\n", ""), 400, "encoding_invalid");
  expect_refused("POST /quick HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, 400,
                 "encoding_invalid");
}

TEST_F(http_messages, with_malformed_chunks_are_refused) {
  const auto chunked = [&](const std::string& chunks) {
    expect_refused(post_with("Transfer-Encoding: chunked\r\n", chunks), 400, "chunk_malformed");
  };
  chunked("x\r\nabc\r\n0\r\n\r\n");
  chunked("3\r\nabcd\r\n0\r\n\r\n");
  chunked("-3\r\nabc\r\n0\r\n\r\n");
  chunked("0x3\r\nabc\r\n0\r\n\r\n");
  chunked("fffffffffffffffff\r\nabc\r\n0\r\n\r\n");
  chunked(" 3\r\nabc\r\n0\r\n\r\n");
  chunked("3;" + std::string(70'000, 'x'));
  chunked("3;a=\"\n\"\r\nabc\r\n0\r\n\r\n");
  chunked("3\r\nabc\r\n0\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
  expect_refused(post_with("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n"),
                 400, "length_invalid");
  expect_refused(post_with("Transfer-Encoding: chunked\r\n", "3\nabc\n0\n\n"), 400, "line_malformed");
  expect_refused(post_with("Transfer-Encoding: chunked\r\n", "ffffffff\r\n"), 413, "body_too_large");
}

TEST_F(http_messages, with_whole_chunks_are_joined) {
  auto client = connect();
  const auto answer = client.ask(
      post_with("Transfer-Encoding: Chunked\r\n", "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Late: 1\r\n\r\n"));
  EXPECT_EQ(answer.body, "POST /quick [abcde]");
  EXPECT_EQ(client.ask(get_of("/quick")).status, 200) << "the trailer was taken, and taken for nothing else";
}

TEST_F(http_messages, with_invalid_headers_are_refused) {
  const auto get_with = [](const std::string& header) {
    return "GET /quick HTTP/1.1\r\nHost: x\r\n" + header + "\r\n\r\n";
  };
  expect_refused(get_with("Bad Name: 1"), 400, "request_malformed");
  expect_refused(get_with("Bad-Name : 1"), 400, "request_malformed");
  expect_refused(get_with(": 1"), 400, "request_malformed");
  expect_refused(get_with("NoColon"), 400, "request_malformed");
  expect_refused(get_with("X: a\x01z"), 400, "request_malformed");
  expect_refused(get_with(std::string("X: a\0z", 6)), 400, "request_malformed");
  expect_refused(get_with("X: a\rz"), 400, "request_malformed");
  expect_refused(get_with("X: a\r\n folded"), 400, "header_folded");
  expect_refused("GET /quick HTTP/1.1\r\nX: no host\r\n\r\n", 400, "host_invalid");
  expect_refused(get_with("Host: y"), 400, "host_invalid");
  expect_refused(get_with("Expect: a miracle"), 417, "expectation_unknown");
}

TEST_F(http_messages, that_are_refused_at_their_head_are_answered_after_the_large_answer_before_them) {
  const std::string large(100'000, 'l');
  const std::string nowhere = "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
  const std::string without_host = "GET /quick HTTP/1.1\r\n\r\n";
  for (const auto& [next, status] :
       {std::pair(nowhere, 404), {without_host, 400}, {"NONSENSE\r\n\r\n", 400}, {get_of("/quick"), 200}}) {
    auto client = connect();
    client.send(post_of("/slow", large) + next);
    const auto first = client.answer();
    EXPECT_EQ(first.status, 200);
    EXPECT_TRUE(first.body == "POST /slow [" + large + "]") << next << first.body.substr(0, 200);
    EXPECT_EQ(client.answer().status, status) << next;
  }
}

// Proves I1: whoever stands before the server sees another length, or another key.
TEST_F(http_messages, with_headers_that_go_on_in_another_line_are_refused) {
  const auto folded = [&](const std::string& headers, const std::string& rest = "") {
    const auto bytes = post_with(headers, rest);
    expect_refused(bytes, 400, "header_folded");
    auto dripping = connect();
    for (const char byte : bytes)
      if (!dripping.send({&byte, 1})) break;
    EXPECT_EQ(dripping.answer().status, 400) << bytes;
  };
  const std::string chunks = "3\r\nabc\r\n0\r\n\r\n";
  folded("X: a\r\n b\r\n");
  folded("X: a\r\n \r\n");
  folded("Idempotency-Key:\r\n abc\r\n");
  folded("Idempotency-Key: \t \r\n\tabc\r\n");
  folded("X:\r\n \r\n a\r\n");
  folded("X:\r\n \r\n");
  folded("Content-Length:\r\n 3\r\n", "abc");
  folded("Transfer-Encoding:\r\n chunked\r\n", chunks);
  folded("Content-Length: 3\r\nX:\r\n Transfer-Encoding: chunked\r\n", "abc");
  folded("Transfer-Encoding: chunked\r\n", "0\r\nX-Late:\r\n 1\r\n\r\n");
  auto client = connect();
  EXPECT_EQ(client.ask(post_with("X:\r\nY: \t \r\nContent-Length: 3\r\n", "abc")).body, "POST /quick [abc]");
}

TEST_F(http_messages, with_bare_line_feeds_are_refused) {
  expect_refused("GET /quick HTTP/1.1\nHost: x\n\n", 400, "request_malformed");
  expect_refused("GET /quick HTTP/1.1\r\nHost: x\n\r\n", 400, "request_malformed");
  expect_refused("GET /quick\n", 400, "request_malformed");
  expect_refused("GET /quick HTTP/1.1\r\nHost: x\nA", 400, "request_malformed");
}

TEST_F(http_messages, with_a_line_that_is_none_are_refused) {
  expect_refused("NONSENSE\r\n\r\n", 400, "request_malformed");
  expect_refused("GET  /quick HTTP/1.1\r\nHost: x\r\n\r\n", 400, "request_malformed");
  expect_refused("GET /quick HTTP/1.1 \r\nHost: x\r\n\r\n", 400, "request_malformed");
  expect_refused("GET /qu ick HTTP/1.1\r\nHost: x\r\n\r\n", 400, "request_malformed");
  expect_refused("G(T /quick HTTP/1.1\r\nHost: x\r\n\r\n", 400, "request_malformed");
  expect_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "version_unknown");
  expect_refused("GET quick HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid");
  expect_refused("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "target_invalid");
  expect_refused(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400, "request_malformed");
}

TEST_F(http_messages, that_are_refused_name_their_own_path_and_never_that_of_an_earlier_one) {
  const auto instance_of = [](const test::raw_answer& got) -> std::string {
    const auto document = boost::json::parse(got.body);
    const auto* named = document.as_object().if_contains("instance");
    return named == nullptr ? "none" : std::string(named->as_string());
  };
  auto client = connect();
  EXPECT_EQ(client.ask(get_of("/quick")).status, 200);
  EXPECT_EQ(client.ask(get_of("/trace/7")).status, 200) << "on another thread";
  EXPECT_EQ(instance_of(client.ask(get_of("/no/where?token=1"))), "/no/where");
  EXPECT_EQ(client.ask(get_of("/quick")).status, 200);
  EXPECT_EQ(instance_of(client.ask("NONSENSE\r\n\r\n")), "none");
}

TEST_F(http_messages, of_http_1_0_are_answered_and_closed_unless_they_ask_otherwise) {
  auto old = connect();
  const auto answer = old.ask("GET /quick HTTP/1.0\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("Connection: close"));
  old.finish();
  EXPECT_TRUE(old.ends());
  auto keeping = connect();
  EXPECT_TRUE(
      keeping.ask("GET /quick HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").has("Connection: keep-alive"));
  EXPECT_EQ(keeping.ask("GET /slow HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").status, 200);
}

TEST_F(http_messages, that_expect_to_be_told_are_told_to_go_on) {
  auto client = connect();
  EXPECT_EQ(client.ask(post_with("Content-Length: 3\r\nExpect: 100-continue\r\n", "")).status, 100);
  EXPECT_EQ(client.ask("abc").body, "POST /quick [abc]");
  auto too_large = connect();
  EXPECT_EQ(too_large.ask(post_with("Content-Length: 30000000\r\nExpect: 100-continue\r\n", "")).status, 413);
  auto nowhere = connect();
  EXPECT_EQ(
      nowhere.ask("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n").status,
      404);
}

TEST_F(http_messages, that_come_together_are_answered_in_order) {
  auto client = connect();
  std::string all;
  for (int n = 0; n < 50; ++n)
    all += get_of("/quick") + post_of(n % 3 == 0 ? "/slow" : "/quick", std::to_string(n));
  client.send(all);
  for (int n = 0; n < 50; ++n) {
    EXPECT_EQ(client.answer().body, "GET /quick []");
    const auto path = n % 3 == 0 ? "/slow" : "/quick";
    EXPECT_EQ(client.answer().body, std::string("POST ") + path + " [" + std::to_string(n) + "]");
  }
}

TEST_F(http_messages, that_come_byte_by_byte_are_read) {
  auto client = connect();
  for (const char one : "\r\n" + post_of("/quick", "abc") + get_of("/slow")) client.send({&one, 1});
  EXPECT_EQ(client.answer().body, "POST /quick [abc]");
  EXPECT_EQ(client.answer().body, "GET /slow []");
}

// One may be left behind by the request before; any number would keep a silent connection open.
TEST_F(http_messages, behind_more_than_one_empty_line_are_refused) {
  expect_refused("\r\n\r\n" + get_of("/quick"), 400, "request_malformed");
  auto dripping = connect();
  for (const char one : std::string_view("\r\n\r\n")) dripping.send({&one, 1});
  EXPECT_EQ(dripping.answer().status, 400);
}

TEST_F(http_messages, behind_one_that_is_refused_are_not_read) {
  auto client = connect();
  client.send(post_with("Content-Length: 3\r\nContent-Length: 4\r\n", "") + get_of("/quick"));
  EXPECT_EQ(client.answer().status, 400);
  EXPECT_TRUE(client.ends());
}

std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  static const std::vector<std::string> pieces{"\r\n",
                                               "\n",
                                               "\r",
                                               ":",
                                               " ",
                                               "\t",
                                               std::string(1, '\0'),
                                               "0",
                                               "-1",
                                               "\xff",
                                               "chunked",
                                               "Content-Length: 5\r\n",
                                               "Transfer-Encoding: chunked\r\n",
                                               "HTTP/1.0",
                                               "\r\n\r\n",
                                               ";",
                                               "ffffffffffffffff",
                                               "Expect: 100-continue\r\n"};
  for (std::size_t times = 1 + below(4); times > 0; --times) {
    const auto at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(40)));
        break;
      default:
        text.resize(at);
        break;
    }
    if (text.empty()) text = "G";
  }
  return text;
}

TEST_F(http_messages, of_thousands_of_mutations_do_the_server_no_harm) {
  const std::vector<std::string> seeds{get_of("/quick"), post_of("/quick", "hello"),
                                       post_of("/slow", "hello") + get_of("/quick"),
                                       post_with("Transfer-Encoding: chunked\r\nX-A: b\r\n",
                                                 "5\r\nhello\r\n3;a=\"b\"\r\nabc\r\n0\r\nT: r\r\n\r\n"),
                                       "GET /trace/%41b?x=y HTTP/1.1\r\nHost: x\r\ntraceparent: "
                                       "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"};
  std::mt19937 random(20240611);
  for (int n = 0; n < 4000; ++n) {
    const auto bytes = mutated(seeds[static_cast<std::size_t>(n) % seeds.size()], random);
    auto client = connect();
    ASSERT_TRUE(client.connected()) << n;
    client.send(bytes);
    client.finish();
    while (client.answer().status != 0) {
    }
    if (n % 200 == 0) expect_good_service();
  }
  expect_good_service();
  EXPECT_EQ(log_.count("http_handler_failed"), 0U);
}

}  // namespace
}  // namespace settle
