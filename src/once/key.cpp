#include "once/key.hpp"

#include <boost/json.hpp>

#include "base/json.hpp"
#include "base/parts.hpp"
#include "base/sha256.hpp"
#include "base/zoo.hpp"
#include "settle/error.hpp"

namespace settle::keys {
namespace {

std::string digest(std::string_view of) {
  const auto bytes = sha256(of);
  return {bytes.begin(), bytes.end()};
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
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = number << 8U | static_cast<std::uint8_t>(identity.at(i));
  return static_cast<std::int64_t>(number);
}

std::string fingerprint_of(std::string_view given) { return given.empty() ? std::string() : digest(given); }

void append_answer(parameters& row, const answer& of) {
  auto headers = headers_json(of);
  auto hash = hash_of(of.status, headers, of.body);
  row.emplace_back(of.status);
  row.emplace_back(std::move(headers));
  row.emplace_back(blob{of.body});
  row.emplace_back(blob{std::move(hash)});
}

std::optional<stored_answer> read_stored(const result& rows) {
  if (rows.empty() || rows[0][1].is_null()) return std::nullopt;
  const auto row = rows[0];
  const auto status = row[3].integer();
  if (row[6].bytes() != hash_of(status, row[4].text(), row[5].bytes()))
    throw error(errc::store_corrupt, "the recorded answer of an idempotency key does not have its own hash");
  stored_answer found;
  found.run = row[1].text();
  found.fingerprint = row[2].bytes();
  found.what.status = static_cast<int>(status);
  found.what.headers = headers_from(row[4].text());
  found.what.body = row[5].bytes();
  return found;
}

}  // namespace settle::keys
