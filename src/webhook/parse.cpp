#include "webhook/parse.hpp"

#include <algorithm>
#include <charconv>

#include "base/encoding.hpp"
#include "webhook/crypto.hpp"

namespace settle::hooks {
namespace {

constexpr std::size_t code_bytes = std::tuple_size_v<mac>;
constexpr std::size_t seconds_digits_max = 11;

parsed refuse(refusal why) { return {why, {}}; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Calls `take` for each part. False: there are more than signatures_max of them.
template <class Take>
bool for_each_part(std::string_view list, char separator, Take&& take) {
  std::size_t count = 0;
  while (!list.empty()) {
    const auto end = std::min(list.find(separator), list.size());
    const auto part = trimmed(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    if (part.empty()) continue;
    if (++count > limits::signatures_max) return false;
    take(part);
  }
  return true;
}

void add_if_sized(std::vector<std::string>& to, std::optional<std::string> decoded, std::size_t bytes) {
  if (decoded && decoded->size() == bytes) to.push_back(std::move(*decoded));
}

// A header that a scheme needs: its value without blanks around it, or why not.
struct needed {
  std::string_view value;
  std::optional<refusal> refused;
};
needed need(const request& what, std::string_view name, std::size_t bytes_max, refusal if_missing) {
  const auto found = find_header(what.headers, name);
  if (found.twice) return {{}, refusal::malformed};
  if (!found.value) return {{}, if_missing};
  const auto value = trimmed(*found.value);
  if (value.size() > bytes_max) return {{}, refusal::malformed};
  if (value.empty()) return {{}, if_missing};
  return {value, std::nullopt};
}

// The specification keeps dots out of ids: with one, "id.time.body" could be cut elsewhere.
bool is_signed_id(std::string_view id) {
  return std::ranges::all_of(id, [](char c) { return c > 0x20 && c < 0x7f && c != '.'; });
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool same_name(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower, lower); }

found_header find_header(const std::vector<header>& all, std::string_view name) {
  found_header found;
  for (const auto& one : all) {
    if (!same_name(one.name, name)) continue;
    if (found.value) found.twice = true;
    found.value = one.value;
  }
  return found;
}

std::optional<std::int64_t> unix_seconds(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > seconds_digits_max || !std::ranges::all_of(text, is_digit))
    return std::nullopt;
  std::int64_t seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return seconds;
}

parsed parse_stripe(const request& what) {
  const auto [list, refused] =
      need(what, "Stripe-Signature", limits::signature_header_bytes_max, refusal::no_signature);
  if (refused) return refuse(*refused);
  parsed out;
  bool several_times = false;
  const bool bounded = for_each_part(list, ',', [&](std::string_view part) {
    if (part.starts_with("t=")) {
      several_times = several_times || !out.what.time_text.empty();
      out.what.time_text = part.substr(2);
    } else if (part.starts_with("v1=")) {
      add_if_sized(out.what.codes, from_hex(part.substr(3)), code_bytes);
    }
  });
  const auto seconds = unix_seconds(out.what.time_text);
  if (!bounded || several_times || !seconds) return refuse(refusal::malformed);
  if (out.what.codes.empty()) return refuse(refusal::no_signature);
  out.what.time_seconds = *seconds;
  return out;
}

parsed parse_standard(const request& what) {
  const auto [list, refused] =
      need(what, "webhook-signature", limits::signature_header_bytes_max, refusal::no_signature);
  if (refused) return refuse(*refused);
  const auto id = need(what, "webhook-id", limits::id_bytes_max, refusal::malformed);
  const auto time = need(what, "webhook-timestamp", seconds_digits_max, refusal::malformed);
  const auto seconds = unix_seconds(time.value);
  if (id.refused || time.refused || !seconds || !is_signed_id(id.value)) return refuse(refusal::malformed);
  parsed out;
  out.what.id = id.value;
  out.what.time_text = time.value;
  out.what.time_seconds = *seconds;
  const bool bounded = for_each_part(list, ' ', [&](std::string_view part) {
    if (part.starts_with("v1,"))
      add_if_sized(out.what.codes, from_base64(part.substr(3)), code_bytes);
    else if (part.starts_with("v1a,"))
      add_if_sized(out.what.ed25519, from_base64(part.substr(4)), ed25519_signature_bytes);
  });
  if (!bounded) return refuse(refusal::malformed);
  if (out.what.codes.empty() && out.what.ed25519.empty()) return refuse(refusal::no_signature);
  return out;
}

parsed parse_hmac(const request& what, const signing& how) {
  auto [text, refused] = need(what, how.header, limits::signature_header_bytes_max, refusal::no_signature);
  if (refused) return refuse(*refused);
  if (!text.starts_with(how.prefix)) return refuse(refusal::malformed);
  text.remove_prefix(how.prefix.size());
  parsed out;
  add_if_sized(out.what.codes, how.encoding == signature_encoding::hex ? from_hex(text) : from_base64(text),
               code_bytes);
  if (out.what.codes.empty()) return refuse(refusal::malformed);
  return out;
}

}  // namespace settle::hooks
