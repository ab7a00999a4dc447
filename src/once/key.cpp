#include "once/key.hpp"

#include <boost/json.hpp>

#include "base/json.hpp"
#include "base/parts.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "base/zoo.hpp"
#include "settle/error.hpp"
#include "settle/event.hpp"

namespace settle::keys {
namespace {

constexpr std::size_t key_bytes_max = 255;

std::string digest(std::string_view of) {
  const auto bytes = sha256(of);
  return {bytes.begin(), bytes.end()};
}

template <class Number>
Number first_bytes(const std::string& of) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8U | static_cast<std::uint8_t>(of.at(i));
  return number;
}

std::string headers_json(const answer& of) {
  json_array all;
  for (const auto& [name, content] : of.headers) all.add_all({name, content});
  return all.text();
}

std::string hash_of(std::int64_t status, std::string_view headers, std::string_view body) {
  std::string text;
  append_part(text, std::to_string(status));
  append_part(text, headers);
  append_part(text, body);
  return digest(text);
}

std::vector<std::pair<std::string, std::string>> headers_from(const std::string& json) {
  std::vector<std::pair<std::string, std::string>> headers;
  const auto parsed = boost::json::parse(json);
  for (const auto& one : parsed.as_array())
    headers.emplace_back(std::string(one.at(0).as_string()), std::string(one.at(1).as_string()));
  return headers;
}

}  // namespace

void check_identity(const request_identity& who) {
  if (who.key.empty() || who.key.size() > key_bytes_max)
    throw error(errc::invalid_argument, "an idempotency key has 1 to " + std::to_string(key_bytes_max) +
                                            " bytes; this one has " + std::to_string(who.key.size()));
  check_name(who.service, {"service of an idempotency key", event_limits::name_bytes_max});
}

void check_answer(const answer& of, std::size_t bytes_max, std::string_view limit) {
  auto bytes = of.body.size();
  for (const auto& [name, content] : of.headers) {
    bytes += name.size() + content.size();
    if (!is_utf8(name) || !is_utf8(content) || (name + content).find('\0') != std::string::npos)
      throw error(errc::invalid_argument, "a header of a recorded answer is not UTF-8 text");
  }
  if (bytes > bytes_max)
    throw error(errc::payload_too_large, "an answer of " + std::to_string(bytes) + " bytes; " +
                                             std::string(limit) + " is " + std::to_string(bytes_max));
}

std::string identity_of(const request_identity& who) {
  std::string text;
  for (const auto part : {who.service, who.caller, who.key})
    if (zoo::has(zoo::bug::key_joined_as_text))
      text.append(part).append(":");
    else
      append_part(text, part);
  return digest(text);
}

std::int64_t lock_number(const std::string& identity) {
  return static_cast<std::int64_t>(first_bytes<std::uint64_t>(identity));
}

std::int64_t shown_number(const std::string& fingerprint) {
  return static_cast<std::int32_t>(first_bytes<std::uint32_t>(fingerprint));
}

std::int64_t shown_beside(const std::string& identity) {
  return static_cast<std::int32_t>(first_bytes<std::uint32_t>(identity));
}

std::string fingerprint_of(std::string_view given) { return given.empty() ? std::string() : digest(given); }

stored_form stored_of(const answer& of) {
  auto headers = headers_json(of);
  auto hash = hash_of(of.status, headers, of.body);
  return {of.status, std::move(headers), {}, std::move(hash)};
}

answer answer_from(const stored_form& of) {
  if (of.hash != hash_of(of.status, of.headers, of.body))
    throw error(errc::store_corrupt, "the recorded answer of an idempotency key does not have its own hash");
  return {.status = static_cast<int>(of.status), .headers = headers_from(of.headers), .body = of.body};
}

void append_answer(parameters& row, const answer& of) {
  auto stored = stored_of(of);
  row.emplace_back(stored.status);
  row.emplace_back(std::move(stored.headers));
  row.emplace_back(blob{of.body});
  row.emplace_back(blob{std::move(stored.hash)});
}

std::optional<stored_answer> read_stored(const result& rows, const stored_columns& at) {
  if (rows.empty()) return std::nullopt;
  const auto row = rows[0];
  return stored_answer{row[at.run].text(), row[at.fingerprint].bytes(),
                       answer_from({row[at.status].integer(), row[at.headers].text(), row[at.body].bytes(),
                                    row[at.response_hash].bytes()})};
}

}  // namespace settle::keys
