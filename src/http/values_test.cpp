#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "http/answer.hpp"
#include "http/characters.hpp"
#include "settle/adapter/boost_json_http.hpp"
#include "settle/database.hpp"
#include "settle/http.hpp"

namespace settle::http {
namespace {

TEST(http_headers, are_found_in_any_case_and_keep_their_order) {
  header_list headers{{"Host", "a"}, {"X-Tag", "1"}, {"x-tag", "2"}};
  EXPECT_EQ(headers.find("HOST"), "a");
  EXPECT_EQ(headers.find("X-TAG"), "1");
  EXPECT_EQ(headers.all("X-Tag"), (std::vector<std::string_view>{"1", "2"}));
  EXPECT_EQ(headers.find("X"), std::nullopt);
  headers.set("x-TAG", "3");
  EXPECT_EQ(headers.count("X-Tag"), 1U);
  headers.add("Last", "");
  std::string all;
  for (const auto one : headers) all += std::string(one.name) + "=" + std::string(one.value) + ";";
  EXPECT_EQ(all, "Host=a;x-TAG=3;Last=;");
  headers.remove("host");
  EXPECT_FALSE(headers.contains("Host"));
  headers.clear();
  EXPECT_TRUE(headers.empty());
}

TEST(http_problem, is_a_document_of_rfc_9457) {
  const auto refused = problem(409, "in_flight", "the first call \"still\" runs\x01");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.headers.find("content-type"), "application/problem+json");
  const auto body = boost::json::parse(refused.body);
  EXPECT_EQ(body.at("title").as_string(), "Conflict");
  EXPECT_EQ(body.at("status").as_int64(), 409);
  EXPECT_EQ(body.at("code").as_string(), "in_flight");
  EXPECT_EQ(body.at("type").as_string(), "about:blank");
  EXPECT_NO_THROW(boost::json::parse(problem(400, "x", "\xff\xfe").body)) << "whatever a client sends in";
}

TEST(http_problem, names_the_path_that_was_asked_for_if_there_is_one) {
  const auto with = boost::json::parse(problem(404, "order_unknown", "no such order", "/orders/4%2F2").body);
  EXPECT_EQ(with.at("instance").as_string(), "/orders/4%2F2");
  EXPECT_FALSE(boost::json::parse(problem(404, "x", "y").body).as_object().contains("instance"));
}

TEST(http_text, is_decoded_only_if_it_is_whole) {
  EXPECT_EQ(percent_decoded("a%2Fb%20c"), "a/b c");
  EXPECT_EQ(percent_decoded("a+b", true), "a b");
  EXPECT_EQ(percent_decoded("a+b"), "a+b");
  for (const auto* broken : {"%", "%2", "%zz", "a%0", "%00", "x%-1"})
    EXPECT_EQ(percent_decoded(broken), std::nullopt);
  EXPECT_TRUE(is_token("X-Tag"));
  for (const auto* no : {"", "a b", "a:", "a\r", "\x80"}) EXPECT_FALSE(is_token(no));
}

TEST(http_query, is_searched_by_name) {
  request asked;
  asked.query = "a=1&b=x%20y+z&c&a=2&bad=%zz";
  EXPECT_EQ(asked.query_parameter("a"), "1");
  EXPECT_EQ(asked.query_parameter("b"), "x y z");
  EXPECT_EQ(asked.query_parameter("c"), "");
  EXPECT_EQ(asked.query_parameter("bad"), std::nullopt);
  EXPECT_EQ(asked.query_parameter("d"), std::nullopt);
}

constexpr const char* parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(http_trace, is_taken_if_it_is_valid_and_becomes_the_cause_of_events) {
  request asked;
  asked.trace = read_trace({{"traceparent", parent}, {"tracestate", "a=1"}, {"Tracestate", "b@c=2, d=3"}});
  EXPECT_EQ(asked.trace.traceparent, parent);
  EXPECT_EQ(asked.trace.tracestate, "a=1,b@c=2, d=3");
  EXPECT_EQ(cause_of(asked).traceparent, parent);
  EXPECT_EQ(cause_of(asked).tracestate, asked.trace.tracestate);
  EXPECT_EQ(read_trace({{"traceparent", std::string("cc") + (parent + 2) + "-more"}}).traceparent.size(), 60U)
      << "a later version may say more";
}

TEST(http_trace, is_ignored_if_it_is_not) {
  const std::string good = parent;
  const auto with = [&](std::size_t at, const std::string& text) {
    return std::string(good).replace(at, text.size(), text);
  };
  for (const auto& bad : {std::string(), with(0, "ff"), with(3, "4B"), with(3, std::string(32, '0')),
                          with(36, std::string(16, '0')), with(2, "_"), good + "-x", good.substr(1),
                          with(53, "g1"), good + " "})
    EXPECT_EQ(read_trace({{"traceparent", bad}}).traceparent, "") << bad;
  EXPECT_EQ(read_trace({{"traceparent", good}, {"traceparent", good}}).traceparent, "");
  for (const std::string& bad :
       {std::string("novalue"), std::string("A=1"), std::string("a="), std::string("a=\x7f"),
        "a=" + std::string(257, 'x'), std::string(600, 'a') + "=1"}) {
    const auto read = read_trace({{"traceparent", good}, {"tracestate", bad}});
    EXPECT_EQ(read.traceparent, good);
    EXPECT_EQ(read.tracestate, "") << bad;
  }
}

TEST(http_answers, are_written_with_the_servers_own_headers) {
  const header_list defaults{{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}};
  std::string out;
  append_head(
      out,
      {201,
       {{"Cache-Control", "private"}, {"Content-Length", "99"}, {"Date", "x"}, {"connection", "close"}},
       "abc"},
      {false, false, "now", &defaults});
  EXPECT_EQ(
      out,
      "HTTP/1.1 201 Created\r\nDate: now\r\nCache-Control: private\r\nX-Content-Type-Options: nosniff\r\n"
      "Content-Length: 3\r\n\r\n");
  out.clear();
  append_head(out, {204, {}, "dropped"}, {true, false, "now", nullptr});
  EXPECT_EQ(out, "HTTP/1.1 204 No Content\r\nDate: now\r\nConnection: close\r\n\r\n");
}

TEST(http_answers, that_would_be_two_are_not_sent) {
  EXPECT_EQ(fault_of({200, {{"X", "fine\t\xc3\xa9"}}, {}}), "");
  EXPECT_NE(fault_of({200, {{"X", "a\r\nSet-Cookie: b"}}, {}}), "");
  EXPECT_NE(fault_of({200, {{"X", std::string_view("a\0b", 3)}}, {}}), "");
  EXPECT_NE(fault_of({200, {{"X Y", "a"}}, {}}), "");
  EXPECT_NE(fault_of({100, {}, {}}), "");
  EXPECT_NE(fault_of({600, {}, {}}), "");
}

TEST(http_json, is_parsed_within_limits_or_refused_with_a_problem) {
  request asked;
  asked.body = R"({"a":[1,2]})";
  asked.headers.add("content-type", "application/json; charset=utf-8");
  const auto given = parse_json(asked);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->at("a").as_array().size(), 2U);
  EXPECT_EQ(parse_json(std::string_view("{\"a\":")).refused().status, 400);
  EXPECT_EQ(parse_json(std::string_view("{} x")).refused().status, 400);
  EXPECT_EQ(parse_json(std::string_view("\"\xff\"")).refused().status, 400);
  const auto deep = parse_json(std::string(33, '[') + std::string(33, ']')).refused();
  EXPECT_EQ(deep.status, 400);
  EXPECT_NE(deep.body.find("json_too_deep"), std::string::npos);
  EXPECT_TRUE(parse_json(std::string(32, '[') + std::string(32, ']')));
  EXPECT_EQ(parse_json(std::string_view("[1]"), {.bytes_max = 2}).refused().status, 413);
  asked.headers.set("Content-Type", "application/cloudevents+json");
  EXPECT_TRUE(parse_json(asked));
  for (const auto* type : {"Application/JSON", "APPLICATION/JSON;charset=UTF-8", "application/json\t; a=b",
                           "application/Problem+Json"}) {
    asked.headers.set("Content-Type", type);
    EXPECT_TRUE(parse_json(asked)) << type;
  }
  asked.headers.set("Content-Type", "text/plain");
  EXPECT_EQ(parse_json(asked).refused().status, 415);
  EXPECT_EQ(json(201, {{"id", 7}}).body, "{\"id\":7}");
}

TEST(http_json, with_a_member_twice_in_one_object_is_refused) {
  for (const std::string_view twice :
       {R"({"a":1,"a":1})", R"([{"x":{"a":1,"b":2,"a":3}}])", R"({"a":1,"\u0061":2})", R"({"":1,"":2})"}) {
    const auto refused = parse_json(twice);
    ASSERT_FALSE(refused) << twice;
    EXPECT_EQ(refused.refused().status, 400);
    EXPECT_NE(refused.refused().body.find("json_ambiguous"), std::string::npos) << refused.refused().body;
  }
  for (const std::string_view once :
       {R"({"a":{"a":1},"b":[{"a":1},{"a":2}]})", R"({"a:\\":"x\":{\"a\":1}","b":":"})", R"(":")", "[]",
        R"({"A":1,"a":2})"})
    EXPECT_TRUE(parse_json(once)) << once;
}

}  // namespace
}  // namespace settle::http
