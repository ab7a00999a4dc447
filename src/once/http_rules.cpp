#include "once/http_rules.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/json_members.hpp"
#include "base/parts.hpp"
#include "settle/request_key.hpp"

namespace settle::http {
namespace {

namespace json = boost::json;

constexpr std::size_t key_bytes_max = 255;  // of request_identity::key

// What the body means, and where to go from there.
constexpr std::array always_recorded = {
    "Content-Type", "Content-Encoding", "Content-Language", "Location", "ETag", "Link"};
// Of the connection, of the moment, or of one client's session.
constexpr std::array never_recorded = {"Connection",
                                       "Keep-Alive",
                                       "Proxy-Authenticate",
                                       "Proxy-Authorization",
                                       "Proxy-Connection",
                                       "TE",
                                       "Trailer",
                                       "Transfer-Encoding",
                                       "Upgrade",
                                       "Content-Length",
                                       "Date",
                                       "Age",
                                       "Set-Cookie",
                                       "Set-Cookie2",
                                       "Retry-After",
                                       "Idempotent-Replayed"};
constexpr std::array never_recorded_prefixes = {"ratelimit", "x-ratelimit", "x-rate-limit"};

bool begins_with(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() && same_name(name.substr(0, prefix.size()), prefix);
}

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view one) { return same_name(one, name); });
}

struct read_body {
  std::optional<json::object> object = std::nullopt;
  bool ambiguous = false;  // a member is there twice; then there is no object to take anything from
};

read_body read(const std::string& body) {
  boost::system::error_code failed;
  auto parsed = json::parse(body, failed);
  if (failed || !parsed.is_object()) return {};
  if (repeats_a_member(body, parsed)) return {.ambiguous = true};
  return {.object = std::move(parsed.get_object())};
}

// The fields' values in the order of the policy, or nothing if there is no object to take them from.
std::optional<std::string> fields_of(const idempotency& policy, const std::string& body) {
  if (policy.fingerprint_fields.empty()) return std::nullopt;
  const auto parsed = read(body).object;
  if (!parsed) return std::nullopt;
  std::string text;
  for (const auto& name : policy.fingerprint_fields) {
    const auto* found = parsed->if_contains(name);
    append_part(text, found == nullptr ? "" : json::serialize(*found));
  }
  return text;
}

struct refusal {
  int status;
  std::string_view code;
  std::string_view detail;
};

response refuse(const idempotency& policy, const request& asked, const refusal& why) {
  if (policy.profile == idempotency_profile::ietf)
    return problem(why.status, why.code, why.detail, asked.path);
  const json::object error{{"type", "idempotency_error"}, {"code", why.code}, {"message", why.detail}};
  return text(why.status, "application/json", json::serialize(json::object{{"error", error}}));
}

// What a member says that is an id; empty: it is none.
std::string id_of(const json::value& member) {
  if (member.is_string()) return std::string(member.get_string());
  return member.is_int64() || member.is_uint64() ? json::serialize(member) : std::string();
}

// Its name goes with it: ids of two members may be equal.
read_key key_from_body(const idempotency& policy, const request& asked) {
  if (policy.key_field.empty()) return {};
  const auto body = read(asked.body);
  if (body.ambiguous)
    return {.refused =
                refuse(policy, asked,
                       {400, policy.codes.invalid,
                        "the JSON body has a member twice in one object, so nobody can tell its key"})};
  const auto* member = body.object ? body.object->if_contains(policy.key_field) : nullptr;
  if (member == nullptr || member->is_null()) return {};
  const auto id = id_of(*member);
  auto key = policy.key_field + ":" + id;
  if (!id.empty() && key.size() <= key_bytes_max) return {.key = std::move(key)};
  const auto detail = "the member " + policy.key_field + " is no key: it is an integer or a string of 1 to " +
                      std::to_string(key_bytes_max - policy.key_field.size() - 1) + " bytes";
  return {.refused = refuse(policy, asked, {400, policy.codes.invalid, detail})};
}

response key_missing(const idempotency& policy, const request& asked) {
  const auto member =
      policy.key_field.empty() ? "" : " or a member " + policy.key_field + " in its JSON body";
  const auto detail = "this request needs a header Idempotency-Key" + member +
                      ": one value per action, the same on every repetition";
  return refuse(policy, asked, {400, policy.codes.missing, detail});
}

}  // namespace

keeps keep_of(const idempotency& policy, int status) {
  const bool stripe = policy.profile == idempotency_profile::stripe;
  if (status >= 500) return policy.record.server_error.value_or(stripe ? keeps::answer : keeps::nothing);
  if (status >= 400) return policy.record.client_error;
  return keeps::everything;
}

bool is_covered(const idempotency& policy, std::string_view method) {
  return std::ranges::find(policy.methods, method) != policy.methods.end();
}

std::string fingerprint_of(const idempotency& policy, const request& asked) {
  std::string text;
  append_part(text, asked.method);
  append_part(text, asked.target);
  const auto fields = fields_of(policy, asked.body);
  append_part(text, fields ? "fields" : "body");
  append_part(text, fields ? *fields : asked.body);
  return text;
}

read_key key_of(const idempotency& policy, const request& asked) {
  const auto sent = asked.headers.all("Idempotency-Key");
  if (sent.empty()) {
    auto found = key_from_body(policy, asked);
    if (policy.required && !found.key && !found.refused) found.refused = key_missing(policy, asked);
    return found;
  }
  if (sent.size() > 1)
    return {.refused =
                refuse(policy, asked, {400, policy.codes.invalid, "there is more than one Idempotency-Key"})};
  const auto read = parse_request_key(sent.front());
  if (!read.key) {
    const auto detail = "the Idempotency-Key is no key: " + std::string(to_string(read.refused));
    return {.refused = refuse(policy, asked, {400, policy.codes.invalid, detail})};
  }
  return {.key = read.key->text()};
}

bool may_be_recorded(std::string_view name) {
  return !contains(never_recorded, name) &&
         std::ranges::none_of(never_recorded_prefixes, [&](auto one) { return begins_with(name, one); });
}

answer to_record(const idempotency& policy, const kept_response& of) {
  const auto& sent = of.what;
  answer made{
      .status = sent.status, .body = sent.body, .keep = of.keep.value_or(keep_of(policy, sent.status))};
  for (const auto [name, content] : sent.headers)
    if (contains(always_recorded, name) || contains(policy.headers, name))
      made.headers.emplace_back(name, content);
  return made;
}

response replayed(const answer& of) {
  response made{.status = of.status, .body = of.body};
  for (const auto& [name, content] : of.headers) made.headers.add(name, content);
  made.headers.set("Idempotent-Replayed", "true");
  return made;
}

response in_flight(const idempotency& policy, const request& asked) {
  auto made =
      refuse(policy, asked,
             {409, policy.codes.in_flight,
              "the first request with this Idempotency-Key is still at work; come again with the same key"});
  made.headers.set("Retry-After", "1");
  return made;
}

response mismatch(const idempotency& policy, const request& asked) {
  const int status = policy.profile == idempotency_profile::stripe ? 400 : 422;
  return refuse(policy, asked,
                {status, policy.codes.reused,
                 "this Idempotency-Key was used for another request; a new action needs a new key"});
}

response caller_unknown(const request& asked) {
  return problem(401, "caller_unknown", "this request needs an authenticated caller", asked.path);
}

response handler_failed(const request& asked) {
  return problem(500, "internal_error", "the service failed; its log says why", asked.path);
}

}  // namespace settle::http
