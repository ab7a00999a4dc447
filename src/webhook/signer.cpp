// What providers do, for those who play one.
#include "base/encoding.hpp"
#include "settle/error.hpp"
#include "settle/webhook_signature.hpp"
#include "webhook/crypto.hpp"

namespace settle::inline v0::webhook {
namespace {

std::string code_of(std::string_view secret, std::initializer_list<std::string_view> parts) {
  const auto code = hooks::hmac_sha256(secret, parts);
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

// Of a key that a verifier has accepted: "whsec_" and base64, with or without its padding.
std::string secret_in(const std::string& key) {
  if (!key.starts_with("whsec_"))
    throw error(errc::invalid_argument,
                "webhook signing: only a whsec_ key signs; a whpk_ key only verifies");
  auto base64 = key.substr(6);
  if (!base64.ends_with('=')) base64.append((4 - base64.size() % 4) % 4, '=');
  return from_base64(base64).value_or("");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> sign(const signing& how, std::string_view body,
                                                      timestamp now, std::string_view id) {
  const verifier takes_the_same(how);  // or throws
  const auto& key = how.keys.front();
  const auto seconds =
      std::to_string(std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
  switch (how.how) {
    case scheme::stripe:
      return {{"Stripe-Signature", "t=" + seconds + ",v1=" + to_hex(code_of(key, {seconds, ".", body}))}};
    case scheme::standard:
      return {
          {"webhook-id", std::string(id)},
          {"webhook-timestamp", seconds},
          {"webhook-signature", "v1," + to_base64(code_of(secret_in(key), {id, ".", seconds, ".", body}))}};
    case scheme::hmac:
      break;
  }
  const auto code = code_of(key, {body});
  const auto text = how.encoding == signature_encoding::hex ? to_hex(code) : to_base64(code);
  return {{how.header, how.prefix + text}};
}

}  // namespace settle::inline v0::webhook
