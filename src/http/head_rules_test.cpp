#include "http/head_rules.hpp"

#include <gtest/gtest.h>

#include "http/request_parser.hpp"

namespace settle::http {
namespace {

TEST(http_head_rules, tell_how_long_a_message_is_and_whether_another_may_follow) {
  framing read;
  EXPECT_FALSE(read_framing(11, {{"Host", "x"}}, read));
  EXPECT_TRUE(read.keep_alive);
  EXPECT_FALSE(read.has_body());
  EXPECT_FALSE(
      read_framing(11, {{"Host", "x"}, {"content-length", "12"}, {"Connection", "TE, Close"}}, read));
  EXPECT_EQ(read.content_length, 12U);
  EXPECT_FALSE(read.keep_alive);
  EXPECT_FALSE(read_framing(11, {{"Host", "x"}, {"Transfer-Encoding", "CHUNKED"}}, read));
  EXPECT_TRUE(read.chunked);
  EXPECT_FALSE(read_framing(10, {}, read));
  EXPECT_FALSE(read.keep_alive);
  EXPECT_FALSE(read_framing(10, {{"Connection", "keep-alive"}}, read));
  EXPECT_TRUE(read.keep_alive);
}

TEST(http_head_rules, let_a_client_wait_for_100_only_if_it_has_something_to_send) {
  framing read;
  EXPECT_FALSE(read_framing(11, {{"Host", "x"}, {"Expect", "100-Continue"}, {"Content-Length", "3"}}, read));
  EXPECT_TRUE(read.expects_continue);
  EXPECT_FALSE(read_framing(11, {{"Host", "x"}, {"Expect", "100-continue"}}, read));
  EXPECT_FALSE(read.expects_continue);
  EXPECT_FALSE(read_framing(10, {{"Expect", "100-continue"}, {"Content-Length", "3"}}, read));
  EXPECT_FALSE(read.expects_continue);
}

TEST(http_head_rules, refuse_what_can_be_read_in_two_ways) {
  const auto status_of = [](int version, header_list headers) {
    framing read;
    return read_framing(version, headers, read).status;
  };
  EXPECT_EQ(status_of(11, {}), 400);
  EXPECT_EQ(status_of(11, {{"Host", "a"}, {"host", "a"}}), 400);
  EXPECT_EQ(status_of(11, {{"Host", "a b"}}), 400);
  for (const auto* host : {"", "a", "a:", "a:80", "a.example.:65535", "xn--zrich-kva.ch", "a_b~c", "a%20b",
                           "1.2.3.4:1", "[::1]", "[::1]:443", "[::ffff:1.2.3.4]", "[v1.a:b]", "a;b=c", "*"})
    EXPECT_EQ(status_of(11, {{"Host", host}}), 0) << host;
  for (const auto* host :
       {"a b",     "a,b",  "a/b",       "u@a",   "a\tb",   "a?b", "a#b",      "a\\b",    "a^b",
        "a|b",     "<a>",  "\"a\"",     "a`b",   "{a}",    "a%2", "a%zz",     "a:b",     "a:80:80",
        "a:65536", "a:-1", "a:+1",      ":80",   "::1",    "[",   "[]",       "[::1",    "[::1]x",
        "[::1]:x", "[a]",  "[1.2.3.4]", "[v.a]", "[vx.a]", "a]",  "\xc3\xa4", "http://a"})
    EXPECT_EQ(status_of(11, {{"Host", host}}), 400) << host;
  for (const auto* length : {"", "-1", "+1", "1,1", "1 1", "0x1", "99999999999999999999"})
    EXPECT_EQ(status_of(11, {{"Host", "x"}, {"Content-Length", length}}), 400) << length;
  EXPECT_EQ(status_of(11, {{"Host", "x"}, {"Content-Length", "1"}, {"Content-Length", "1"}}), 400);
  EXPECT_EQ(status_of(11, {{"Host", "x"}, {"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}}), 400);
  EXPECT_EQ(status_of(11, {{"Host", "x"}, {"Transfer-Encoding", "identity"}}), 400);
  EXPECT_EQ(status_of(11, {{"Host", "x"}, {"Transfer-Encoding", "gzip, chunked"}}), 501);
  EXPECT_EQ(status_of(10, {{"Transfer-Encoding", "chunked"}}), 400);
  EXPECT_EQ(status_of(11, {{"Host", "x"}, {"Expect", "200-ok"}}), 417);
}

// What becomes of bytes that come in pieces of these sizes; the last one is the rest.
std::string outcome_of(std::string_view bytes, std::size_t first, std::size_t piece) {
  request into;
  request_parser parser({8192, 16384, 100});
  parser.begin(into);
  std::string seen, waiting;
  for (std::size_t at = 0, size = first; at < bytes.size(); at += size, size = piece) {
    waiting += bytes.substr(at, size);
    for (;;) {
      const auto made = parser.feed(waiting);
      waiting.erase(0, made.consumed);
      if (made.refused) return seen + std::to_string(made.refused.status);
      if (made.reached == request_parser::step::more) break;
      if (made.reached == request_parser::step::head) parser.limit_body(1000);
      if (made.reached != request_parser::step::done) continue;
      seen +=
          into.method + " " + into.target + " " + std::to_string(into.headers.size()) + " " + into.body + ";";
      into = {};
      parser.begin(into);
    }
  }
  return seen;
}

TEST(http_request_parser, reads_the_same_however_the_bytes_are_cut) {
  const std::string two =
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\r\nGET /b HTTP/1.1\r\nHost: y\r\n\r\n";
  const std::string chunks =
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nT: "
      "1\r\n\r\n" +
      two;
  const std::string bad_chunk =
      "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n";
  const std::string bare = "GET /a HTTP/1.1\r\nHost: x\nX: y\r\n\r\n";
  const std::string folded = "GET /a HTTP/1.1\r\nHost: x\r\nX: y\r\n z\r\n\r\n";
  const std::string empty_then_folded = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 5\r\n\r\nhello";
  EXPECT_EQ(outcome_of(empty_then_folded, 999, 1), "400");
  EXPECT_EQ(outcome_of(two, two.size(), 1), "POST /a 2 hello;GET /b 1 ;");
  EXPECT_EQ(outcome_of(chunks, chunks.size(), 1), "POST /c 2 abcde;POST /a 2 hello;GET /b 1 ;");
  for (const auto& bytes : {two, chunks, bad_chunk, bare, folded, empty_then_folded}) {
    const auto whole = outcome_of(bytes, bytes.size(), 1);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut)
      EXPECT_EQ(outcome_of(bytes, cut, bytes.size()), whole) << bytes << " cut at " << cut;
    for (const std::size_t piece : {1, 2, 3, 7}) EXPECT_EQ(outcome_of(bytes, piece, piece), whole) << bytes;
  }
}

}  // namespace
}  // namespace settle::http
