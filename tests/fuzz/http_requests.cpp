// Fuzz entry for the parser of HTTP requests.
//
// The input is what comes over one connection. However it is cut into pieces, the same requests are read, and
// what is refused is refused (for what, if several things are wrong, may differ); what is read lies within
// the limits, has no folded header, and is read again from what a strict client would write for it; a refusal
// is a problem document with a status of the guide.
#include "fuzz/http_requests.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "fuzz/entries.hpp"
#include "http/characters.hpp"
#include "http/head_rules.hpp"
#include "http/request_parser.hpp"
#include "http/routes.hpp"

namespace settle::fuzz {
namespace {

constexpr http::parser_limits limits{
    .request_line_bytes_max = 100, .header_bytes_max = 500, .header_count_max = 12};
constexpr std::size_t body_bytes_max = 200;

bool is_documented(int status) {
  constexpr std::array all{400, 413, 414, 417, 431, 501, 505};
  return std::ranges::find(all, status) != all.end();
}

void check_refusal(const http::refusal& why) {
  require(is_documented(why.status) && !why.code.empty());
  const auto answer = http::problem(why.status, why.code, why.detail);
  require(answer.headers.find("Content-Type") == "application/problem+json");
  const auto document = boost::json::parse(answer.body);
  require(document.at("status").as_int64() == why.status);
  require(document.at("code").as_string() == why.code);
}

void check_request(const http::request& asked, const http::framing& how) {
  require(http::is_token(asked.method));
  require(asked.method.size() + asked.target.size() <= limits.request_line_bytes_max);
  require(asked.target.find_first_of(std::string_view(" \t\r\n\0", 5)) == std::string::npos);
  require(asked.headers.size() <= limits.header_count_max);
  std::size_t bytes = 0;
  for (const auto [name, value] : asked.headers) {
    require(http::is_token(name) && http::is_field_value(value) && http::trimmed(value) == value);
    bytes += name.size() + value.size();
  }
  require(bytes <= limits.header_bytes_max && asked.body.size() <= body_bytes_max);
  require(how.chunked || asked.body.size() == how.content_length);
}

// As the session does it, without sockets and routes.
class reader {
 public:
  reader() : parser_(limits) { parser_.begin(asked_); }

  // False after a refusal.
  bool feed(std::string_view fresh) {
    waiting_ += fresh;
    while (!got_.refused) {
      const auto made = parser_.feed(waiting_);
      taken_.append(waiting_, 0, made.consumed);
      waiting_.erase(0, made.consumed);
      if (made.refused)
        got_.refused = made.refused;
      else if (made.reached == http::request_parser::step::head)
        got_.refused = on_head();
      else if (made.reached == http::request_parser::step::done)
        on_done();
      else
        break;
    }
    if (got_.refused) check_refusal(got_.refused);
    require(got_.refused || waiting_.size() <= limits.header_bytes_max);
    require(asked_.body.size() <= body_bytes_max);
    return !got_.refused;
  }

  const connection& got() const { return got_; }

 private:
  http::refusal on_head() {
    // Folded headers are not read alike by everybody.
    require(taken_.find("\r\n ") == std::string::npos && taken_.find("\r\n\t") == std::string::npos);
    if (const auto refused = http::read_framing(parser_.version(), asked_.headers, how_)) return refused;
    if (const auto refused = http::split_target(asked_)) return refused;
    parser_.limit_body(body_bytes_max);
    if (how_.content_length > body_bytes_max) return {413, "body_too_large", "the body is too large"};
    return {};
  }

  void on_done() {
    check_request(asked_, how_);
    got_.requests.push_back({asked_, parser_.version(), how_.chunked});
    asked_ = {};
    taken_.clear();
    parser_.begin(asked_);
  }

  http::request_parser parser_;
  http::request asked_;
  http::framing how_;
  std::string waiting_;
  std::string taken_;  // of this request
  connection got_;
};

// Not a byte longer than it was, so that it is within the limits too.
std::string written(const read_request& one) {
  auto text =
      one.asked.method + " " + one.asked.target + (one.version == 11 ? " HTTP/1.1" : " HTTP/1.0") + "\r\n";
  for (const auto [name, value] : one.asked.headers)
    text.append(name).append(":").append(value).append("\r\n");
  text += "\r\n";
  if (!one.chunked) return text + one.asked.body;
  for (const char byte : one.asked.body) text += std::string("1\r\n") + byte + "\r\n";
  return text + "0\r\n\r\n";
}

bool same(const read_request& left, const read_request& right) {
  return left.version == right.version && left.asked.method == right.asked.method &&
         left.asked.target == right.asked.target && left.asked.body == right.asked.body &&
         std::ranges::equal(left.asked.headers, right.asked.headers, [](const auto& a, const auto& b) {
           return a.name == b.name && a.value == b.value;
         });
}

bool same(const std::vector<read_request>& left, const std::vector<read_request>& right) {
  return std::ranges::equal(left, right, [](const auto& a, const auto& b) { return same(a, b); });
}

}  // namespace

connection read_in_pieces(std::string_view bytes, std::size_t first, std::size_t each) {
  reader one;
  bool goes_on = one.feed(bytes.substr(0, first));
  for (auto at = std::min(first, bytes.size()); goes_on && at < bytes.size(); at += each)
    goes_on = one.feed(bytes.substr(at, each));
  // Beast may see what is wrong with a head at once, or when it is complete.
  if (goes_on) one.feed("\r\n\r\n");
  return one.got();
}

bool same(const connection& left, const connection& right) {
  return static_cast<bool>(left.refused) == static_cast<bool>(right.refused) &&
         same(left.requests, right.requests);
}

static void check_rewritten(const connection& got) {
  std::string all;
  for (const auto& one : got.requests) all += written(one);
  require(same(read_in_pieces(all, all.size(), 1).requests, got.requests));
}

void http_requests(std::string_view bytes) {
  const auto size = bytes.size();
  const auto whole = read_in_pieces(bytes, size, 1);
  std::size_t somewhere = size;
  for (const char one : bytes) somewhere = somewhere * 31 + static_cast<unsigned char>(one);
  for (const auto& other : {read_in_pieces(bytes, 1, 1), read_in_pieces(bytes, 3, 7),
                            read_in_pieces(bytes, size == 0 ? 0 : somewhere % size, size)})
    require(same(whole, other));
  check_rewritten(whole);
}

}  // namespace settle::fuzz
