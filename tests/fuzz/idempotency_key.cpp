// Fuzz entry for the header Idempotency-Key.
//
// The input is the header's value. It is one key or refused with a reason. A key is 1 to 255 printable
// characters and is written as it was read, so no two values are taken for one key but the two forms of it; a
// refusal is 400 with a document that names its code, and repeats nothing of the input.
#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "fuzz/entries.hpp"
#include "once/http_rules.hpp"
#include "settle/request_key.hpp"

namespace settle::fuzz {
namespace {

void check_key(const request_key& key, std::string_view value) {
  const auto& text = key.text();
  require(!text.empty() && text.size() <= request_key_bytes_max);
  require(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
  const auto sent = without_outer_space(value);
  require(key.header(sent.front() == '"' ? key_form::quoted : key_form::bare) == sent);
  require(parse_request_key(key.header()).key == key);
}

http::idempotency policy(http::idempotency_profile profile) {
  return {.service = "shop",
          .caller = [](const http::request&) { return std::optional<std::string>("ann"); },
          .profile = profile};
}

http::request with_header(std::string_view value, int times) {
  http::request asked{.method = "POST", .target = "/orders", .path = "/orders"};
  for (; times > 0; --times) asked.headers.add("Idempotency-Key", value);
  return asked;
}

void check_refusal(const http::response& of, http::idempotency_profile profile) {
  require(of.status == 400);
  const auto document = boost::json::parse(of.body);
  const bool ietf = profile == http::idempotency_profile::ietf;
  require(of.headers.find("Content-Type") == (ietf ? "application/problem+json" : "application/json"));
  const auto& about = ietf ? document : document.at("error");
  require(about.at("code").as_string() == "idempotency_key_invalid");
  require(!ietf || about.at("status").as_int64() == 400);
  const auto printable = [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; };
  require(of.body.size() < 300 && std::ranges::all_of(of.body, printable));
}

}  // namespace

void idempotency_key(std::string_view input) {
  const std::string value(input);
  const auto read = parse_request_key(value);
  require(read.key.has_value() == (read.refused == key_refusal::none));
  require(to_string(read.refused) != "unknown");
  const auto spaced = parse_request_key("\t " + value + " ");
  require(spaced.key == read.key && spaced.refused == read.refused);
  if (read.key) check_key(*read.key, value);
  for (const auto profile : {http::idempotency_profile::ietf, http::idempotency_profile::stripe}) {
    const auto once = http::key_of(policy(profile), with_header(value, 1));
    require(once.key.has_value() == read.key.has_value() && once.key.has_value() != once.refused.has_value());
    if (once.key) require(*once.key == read.key->text());
    if (once.refused) check_refusal(*once.refused, profile);
    const auto twice = http::key_of(policy(profile), with_header(value, 2));
    require(!twice.key && twice.refused);
    check_refusal(*twice.refused, profile);
  }
}

}  // namespace settle::fuzz
