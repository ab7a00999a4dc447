#include "http/answer_parser.hpp"

#include <gtest/gtest.h>

#include "http/client_target.hpp"
#include "support/expect_error.hpp"

namespace settle::http {
namespace {

using step = answer_parser::step;

constexpr answer_limits limits{.head_bytes_max = 200, .header_count_max = 4, .body_bytes_max = 20};

struct read_answer {
  step reached{};
  std::size_t consumed = 0;
  response answer = {};
  bool keeps = false;
  std::string why = {};
};

read_answer read(std::string_view bytes, std::size_t each = 1000, bool without_body = false) {
  answer_parser parser(limits, without_body);
  read_answer made;
  for (std::size_t at = 0; at < bytes.size() && parser.reached() == step::more; at += each)
    made.consumed += parser.feed(bytes.substr(at, each));
  made.reached = parser.reached();
  made.keeps = parser.keeps_connection();
  made.why = parser.why();
  made.answer = std::move(parser.answer());
  return made;
}

step reached(std::string_view bytes) { return read(bytes).reached; }
std::string head(std::string_view fields) { return "HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n"; }

// Proves S6
TEST(http_answers, are_read_wherever_their_bytes_are_cut) {
  for (const std::size_t each : {1, 2, 3, 1000}) {
    const auto plain = read("HTTP/1.1 201 Created\r\nContent-Length: 3\r\nX:  a \r\n\r\nabcHTTP", each);
    EXPECT_EQ(plain.reached, step::done);
    EXPECT_EQ(plain.answer.status, 201);
    EXPECT_EQ(plain.answer.body, "abc");
    EXPECT_EQ(plain.answer.headers.find("x"), "a");
    EXPECT_TRUE(plain.keeps);
    const auto chunked =
        read(head("Transfer-Encoding: chunked\r\n") + "3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nX: 1\r\n\r\n", each);
    EXPECT_EQ(chunked.reached, step::done) << chunked.why;
    EXPECT_EQ(chunked.answer.body, "abcde");
    EXPECT_EQ(chunked.answer.headers.find("X"), std::nullopt) << "a trailer is no header";
  }
  EXPECT_EQ(read(head("Content-Length: 1\r\n") + "abc").consumed, head("Content-Length: 1\r\n").size() + 1);
}

// Proves S6
TEST(http_answers, say_whether_the_connection_stays) {
  EXPECT_FALSE(read(head("Content-Length: 0\r\nConnection: x, Close\r\n")).keeps);
  EXPECT_FALSE(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keeps);
  EXPECT_TRUE(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n").keeps);
  answer_parser parser(limits, false);
  parser.feed(head("") + "abc");
  EXPECT_EQ(parser.reached(), step::more);
  EXPECT_EQ(parser.end(), step::done);
  EXPECT_FALSE(parser.keeps_connection());
  EXPECT_EQ(parser.answer().body, "abc");
  answer_parser cut(limits, false);
  cut.feed(head("Content-Length: 4\r\n") + "abc");
  EXPECT_EQ(cut.end(), step::more) << "the end of the connection is not the end of this answer";
}

// Proves S6
TEST(http_answers, without_a_body_end_with_their_head) {
  EXPECT_EQ(read(head("Content-Length: 10\r\n"), 1000, true).reached, step::done);
  EXPECT_EQ(reached("HTTP/1.1 204 No Content\r\n\r\n"), step::done);
  EXPECT_EQ(reached("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"), step::done);
  EXPECT_EQ(reached("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), step::done);
}

// Proves S6
TEST(http_answers, before_the_answer_are_passed_over) {
  const auto made = read("HTTP/1.1 100 Continue\r\nX: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" +
                         head("Content-Length: 0\r\n"));
  EXPECT_EQ(made.reached, step::done) << made.why;
  EXPECT_EQ(made.answer.status, 200);
  EXPECT_EQ(made.answer.headers.find("X"), std::nullopt);
  EXPECT_EQ(reached("HTTP/1.1 101 Switching Protocols\r\n\r\n"), step::malformed);
  std::string for_ever;
  for (int i = 0; i < 20; ++i) for_ever += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(reached(for_ever), step::too_large);
}

// Proves S6
TEST(http_answers, that_could_be_read_in_two_ways_are_refused) {
  for (const auto* fields :
       {"Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: gzip\r\n", "Content-Length: 1, 1\r\n",
        "Content-Length: -1\r\n", "Content-Length: +1\r\n", "Content-Length: 0x1\r\n", "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n", "X: a\r\n b\r\n", "X : a\r\n", ": a\r\n", "X\r\n",
        "X: a\nY: b\r\n", "X: a\rb\r\n"})
    EXPECT_EQ(reached(head(fields)), step::malformed) << fields;
  EXPECT_EQ(reached("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), step::malformed);
  for (const auto* begin :
       {"HTTP/2.0 200 OK\r\n", "HTTP/1.1 99 X\r\n", "HTTP/1.1 600 X\r\n", "HTTP/1.1 2000\r\n",
        "HTTP/1.1  200 OK\r\n", "http/1.1 200 OK\r\n", "\r\n", "SSH-2.0\r\n"})
    EXPECT_EQ(reached(begin), step::malformed) << begin;
  for (const auto* chunk :
       {"x\r\n", "\r\n", "-1\r\n", "3\r\nabcd\r\n", "3\nabc\r\n", "1ffffffffffffffff\r\n"})
    EXPECT_EQ(reached(head("Transfer-Encoding: chunked\r\n") + chunk), step::malformed) << chunk;
}

// Proves S6
TEST(http_answers, beyond_their_limits_are_refused_before_they_are_kept) {
  EXPECT_EQ(reached(head("Content-Length: 21\r\n")), step::too_large);
  EXPECT_EQ(reached(head("") + std::string(21, 'a')), step::too_large);
  EXPECT_EQ(reached(head("Transfer-Encoding: chunked\r\n") + "b\r\n01234567890\r\nb\r\n"), step::too_large);
  EXPECT_EQ(reached(head("Transfer-Encoding: chunked\r\n") + "ffffffffffffffff\r\n"), step::too_large);
  EXPECT_EQ(reached("HTTP/1.1 200 " + std::string(200, 'a')), step::too_large);
  EXPECT_EQ(reached(head("A: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\n")), step::too_large);
  std::string many;
  for (int i = 0; i < 20; ++i) many += "1;" + std::string(50, 'x') + "\r\na\r\n";
  EXPECT_EQ(reached(head("Transfer-Encoding: chunked\r\n") + many + "0\r\n\r\n"), step::done)
      << "chunks are bounded by the body";
}

// Proves S6
TEST(http_urls, say_where_a_request_goes_to) {
  const auto plain = read_target("http://bank.example/charges?x=1");
  EXPECT_EQ(plain.host, "bank.example");
  EXPECT_EQ(plain.port, 80);
  EXPECT_EQ(plain.authority, "bank.example");
  EXPECT_EQ(plain.path, "/charges?x=1");
  EXPECT_EQ(plain.origin(), "http://bank.example:80");
  const auto secure = read_target("https://[::1]:8443");
  EXPECT_TRUE(secure.tls);
  EXPECT_EQ(secure.host, "::1");
  EXPECT_EQ(secure.port, 8443);
  EXPECT_EQ(secure.authority, "[::1]:8443");
  EXPECT_EQ(secure.path, "/");
  EXPECT_EQ(read_target("http://h?x").path, "/?x");
  EXPECT_EQ(read_target("https://h:").port, 443);
}

// Proves S6
TEST(http_urls, that_are_none_are_refused) {
  for (const auto* url : {"", "bank.example", "ftp://h/", "http://", "http:///x", "http://u:p@h/",
                          "http://h:0/", "http://h:70000/", "http://h/a b", "http://h/\r\nX: 1",
                          "http://h/#x", "http://h/\xc3\xa4", "http://[::1/", "http://h,i/"})
    EXPECT_EQ(test::code_of([&] { read_target(url); }), errc::invalid_argument) << url;
}

}  // namespace
}  // namespace settle::http
