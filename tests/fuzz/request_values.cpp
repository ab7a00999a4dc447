// Fuzz entry for the small parsers of what stands in a request or beside a message: targets, queries, dates,
// trace context, encodings, ids and attributes.
//
// The input goes to each of them as it is. What is read is written as it was, or reads the same again once it
// is written.
#include <algorithm>
#include <array>
#include <string>

#include "base/encoding.hpp"
#include "base/json.hpp"
#include "base/time_text.hpp"
#include "fuzz/entries.hpp"
#include "http/characters.hpp"
#include "http/routes.hpp"
#include "http/shared.hpp"
#include "settle/error.hpp"
#include "settle/ids.hpp"

namespace settle::fuzz {
namespace {

std::string percent_encoded(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char one : bytes) {
    const auto byte = static_cast<unsigned char>(one);
    out.append({'%', digits[byte >> 4U], digits[byte & 15U]});
  }
  return out;
}

void check_escapes(std::string_view text) {
  const auto plain = http::percent_decoded(text);
  require(plain.has_value() == http::percent_decoded(text, true).has_value());
  if (!plain) return;
  require(plain->size() <= text.size());
  if (plain->find('\0') == std::string::npos)
    require(http::percent_decoded(percent_encoded(*plain)) == plain);
}

void check_target(std::string_view text) {
  http::request asked{.method = "GET", .target = std::string(text)};
  if (const auto refused = http::split_target(asked)) {
    require(refused.status == 400 && !refused.code.empty());
    return;
  }
  require(asked.path.find_first_of("?#") == std::string::npos && asked.query.find('#') == std::string::npos);
  require(asked.path.size() + asked.query.size() <= text.size() + 1);  // "http://host" has the path "/"
  static_cast<void>(asked.query_parameter("name"));

  http::router routes;
  routes.get("/v1/things/{name}", [](const http::request& with) {
    require(!with.parameter("name").empty());
    return http::text(200, "text/plain", "found");
  });
  const auto status = routes.handle(asked).status;
  require(status == 200 || status == 400 || status == 404);
}

void check_times(std::string_view text) {
  if (const auto at = http::from_date(text)) require(http::to_date(*at) == text);
  if (const auto at = from_rfc3339(text)) require(from_rfc3339(to_rfc3339(*at)) == at);
}

void check_trace(std::string_view text) {
  constexpr std::string_view good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto read = http::read_trace({{"traceparent", std::string(text)}, {"tracestate", "a=1"}});
  require(read.traceparent.empty() || (read.traceparent == text && text.size() >= good.size()));
  require(read.traceparent.empty() == read.tracestate.empty());
  const auto state =
      http::read_trace({{"traceparent", std::string(good)}, {"tracestate", std::string(text)}});
  constexpr std::size_t state_bytes_max = 512;
  require(state.traceparent == good && state.tracestate.size() <= state_bytes_max);
  require(http::is_field_value(state.tracestate));
}

void check_encodings(std::string_view text) {
  require(from_hex(to_hex(text)) == text && from_base64(to_base64(text)) == text);
  if (const auto bytes = from_base64(text)) require(to_base64(*bytes) == text);
  if (const auto bytes = from_hex(text)) require(2 * bytes->size() == text.size());
  if (const auto id = uuid::parse(text)) require(uuid::parse(id->text()) == id && text.size() == 36);
}

void check_attributes(std::string_view text) {
  try {
    const auto read = attributes_from_json(text);
    require(attributes_from_json(to_json(read)) == read);
  } catch (const error& e) {
    require(e.code() == errc::decode_failed);
  }
}

}  // namespace

void request_values(std::string_view input) {
  check_escapes(input);
  check_target(input);
  check_times(input);
  check_trace(input);
  check_encodings(input);
  check_attributes(input);
}

}  // namespace settle::fuzz
