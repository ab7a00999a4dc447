// One verdict: what the headers claim, computed anew with every key, and only then the age.
#include <algorithm>
#include <cctype>

#include "base/encoding.hpp"
#include "settle/error.hpp"
#include "settle/webhook_signature.hpp"
#include "webhook/crypto.hpp"
#include "webhook/parse.hpp"

namespace settle::inline v0::webhook {
namespace {

using hooks::claim;

[[noreturn]] void refuse_option(const std::string& why) {
  throw error(errc::invalid_argument, "webhook signing: " + why);
}

void check_hmac_options(const signing& how) {
  if (how.header.empty()) refuse_option("the header of the signature has no name");
  std::string prefix = how.prefix;
  std::ranges::transform(prefix, prefix.begin(), [](unsigned char c) { return std::tolower(c); });
  if (prefix.starts_with("sha1") || prefix.starts_with("md5"))
    refuse_option("'" + how.prefix + "' is a signature that can be forged; only HMAC-SHA256 is accepted");
}

}  // namespace

std::string_view to_string(refusal of) {
  switch (of) {
    case refusal::no_signature:
      return "no_signature";
    case refusal::malformed:
      return "malformed";
    case refusal::bad_signature:
      return "bad_signature";
    case refusal::too_old:
      return "too_old";
    case refusal::in_future:
      return "in_future";
  }
  return "malformed";
}

class verifier::engine {
 public:
  explicit engine(const signing& how) : how_(how) {
    if (how.keys.empty()) refuse_option("there is no key");
    if (how.keys.size() > limits::keys_max) refuse_option("there are too many keys; 16 are allowed");
    if (how.tolerance <= duration::zero()) refuse_option("the tolerance must be positive");
    if (how.how == scheme::hmac) check_hmac_options(how);
    for (const auto& key : how.keys) add(key);
    how_.keys.clear();
  }

  verdict check(const request& what, timestamp now) const {
    if (what.headers.size() > limits::headers_max) return {refusal::malformed};
    const auto [refused, said] = parse(what);
    if (refused) return {*refused};
    // The age comes last: a replay is known as one only if its signature is right.
    const auto signed_at = timestamp(std::chrono::seconds(said.time_seconds));
    if (!is_signed(said, what.body)) return {refusal::bad_signature};
    if (how_.how == scheme::hmac) return {};
    if (signed_at < now - how_.tolerance) return {refusal::too_old};
    if (signed_at > now + how_.tolerance) return {refusal::in_future};
    return {std::nullopt, signed_at};
  }

 private:
  // Some providers show their keys without the padding at the end. Signatures are read strictly all the same.
  static std::string padded(std::string base64) {
    if (!base64.ends_with('=')) base64.append((4 - base64.size() % 4) % 4, '=');
    return base64;
  }

  // Never names the key: errors end in logs.
  void add(const std::string& key) {
    if (how_.how != scheme::standard) {
      if (key.empty()) refuse_option("a key is empty");
      secrets_.push_back(key);
      return;
    }
    const bool is_public = key.starts_with("whpk_");
    if (key.starts_with("whsk_"))
      refuse_option("a key is the provider's private one (whsk_); it wants whpk_");
    if (!is_public && !key.starts_with("whsec_")) refuse_option("a key begins neither with whsec_ nor whpk_");
    auto decoded = from_base64(padded(key.substr(is_public ? 5 : 6)));
    if (!decoded || decoded->empty()) refuse_option("a key is not base64");
    if (is_public && decoded->size() != hooks::ed25519_key_bytes)
      refuse_option("a whpk_ key is not 32 bytes long");
    (is_public ? public_keys_ : secrets_).push_back(std::move(*decoded));
  }

  hooks::parsed parse(const request& what) const {
    switch (how_.how) {
      case scheme::stripe:
        return hooks::parse_stripe(what);
      case scheme::standard:
        return hooks::parse_standard(what);
      case scheme::hmac:
        break;
    }
    return hooks::parse_hmac(what, how_);
  }

  hooks::mac code_of(const std::string& secret, const claim& said, std::string_view body) const {
    using hooks::hmac_sha256;
    switch (how_.how) {
      case scheme::stripe:
        return hmac_sha256(secret, {said.time_text, ".", body});
      case scheme::standard:
        return hmac_sha256(secret, {said.id, ".", said.time_text, ".", body});
      case scheme::hmac:
        break;
    }
    return hmac_sha256(secret, {body});
  }

  bool is_signed(const claim& said, std::string_view body) const {
    std::vector<hooks::mac> codes;
    for (const auto& secret : secrets_) codes.push_back(code_of(secret, said, body));
    bool matched = hooks::compare_all(codes, said.codes).matched;
    if (public_keys_.empty() || said.ed25519.empty()) return matched;
    std::string text;  // libcrypto takes it in one piece only
    text.reserve(said.id.size() + said.time_text.size() + body.size() + 2);
    text.append(said.id).append(".").append(said.time_text).append(".").append(body);
    for (const auto& key : public_keys_)
      for (const auto& signature : said.ed25519)
        matched = hooks::ed25519_verify(key, signature, text) || matched;
    return matched;
  }

  signing how_;  // without its keys
  std::vector<std::string> secrets_;
  std::vector<std::string> public_keys_;
};

verifier::verifier(const signing& how) : engine_(std::make_unique<const engine>(how)) {}
verifier::~verifier() = default;
verifier::verifier(verifier&&) noexcept = default;

verdict verifier::check(const request& what, timestamp now) const { return engine_->check(what, now); }

}  // namespace settle::inline v0::webhook
