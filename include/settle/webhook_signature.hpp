// Whether a webhook comes from whom it says: the signature over the raw body, and its age.
//
//   const settle::webhook::verifier stripe({.how = settle::webhook::scheme::stripe, .keys = {secret}});
//   const auto verdict = stripe.check({.headers = {{"Stripe-Signature", sent}}, .body = raw_body}, now);
//   if (!verdict.accepted()) return 401;  // and say nothing more
//
// Pure: no I/O, and the time is passed in. The body must be the bytes as they came, never parsed and written
// again. Every key is tried against every signature, and the time that takes does not depend on where two
// signatures differ. What is parsed is bounded: headers, signatures and keys each have a maximum.
//
// A signature says who has sent something, not that it is new: within the tolerance, and for plain HMAC for
// ever, a copy verifies as well as the first. The inbox (settle/webhook.hpp) tells copies by their id.
//
// sign() is the other side: for tests of a receiver, and for stand-ins of providers.
//
// Threads: a verifier may be used by any number at once. Errors: invalid_argument for keys and options that
// cannot work, when the verifier is made; whatever a sender sends is answered with a value.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::webhook {

struct header {
  std::string_view name;  // compared without regard to case
  std::string_view value;
};

// A request as it came. Views: what they show has to outlive the call.
struct request {
  std::vector<header> headers = {};
  std::string_view body = {};
};

struct limits {
  static constexpr std::size_t headers_max = 200;
  static constexpr std::size_t signature_header_bytes_max = 4096;
  static constexpr std::size_t signatures_max = 16;
  static constexpr std::size_t keys_max = 16;
  static constexpr std::size_t id_bytes_max = 255;
};

enum class scheme {
  stripe,    // Stripe-Signature: t=<unix>,v1=<hex>[,v1=…]; signed is "<t>.<body>"
  standard,  // Standard Webhooks: webhook-id, webhook-timestamp, webhook-signature; HMAC (v1), ed25519 (v1a)
  hmac,      // HMAC-SHA256 of the body alone, in a header of the provider's choice
};

enum class signature_encoding { hex, base64 };

struct signing {
  scheme how = scheme::standard;
  // What the provider shows: for stripe and hmac the secret as it is, for standard "whsec_<base64>" (HMAC) or
  // "whpk_<base64>" (an ed25519 public key). Several while keys are changed: any of them may fit.
  std::vector<std::string> keys = {};
  // How far the signed time may be from ours, either way. Plain HMAC signs no time.
  duration tolerance = std::chrono::minutes(5);
  // For hmac: where the signature is, how it is written, and what stands before it. SHA-1 is refused.
  std::string header = "X-Hub-Signature-256";
  signature_encoding encoding = signature_encoding::hex;
  std::string prefix = "sha256=";
};

// Why it was not accepted. For the receiver's own log: the sender learns that it was, and nothing else.
enum class refusal {
  no_signature,   // none at all, or none of a kind that is known
  malformed,      // a header of the scheme is missing, there twice, too long or not of its form
  bad_signature,  // by none of the keys
  too_old,        // rightly signed, longer ago than the tolerance: a replay, or a clock that is wrong
  in_future,      // likewise the other way
};
std::string_view to_string(refusal of);

struct verdict {
  std::optional<refusal> refused = std::nullopt;
  // Of what was accepted: when it was signed, if the scheme signs that. The time of this delivery, not of
  // the event.
  std::optional<timestamp> signed_at = std::nullopt;

  bool accepted() const { return !refused; }
};

class verifier {
 public:
  explicit verifier(const signing& how);
  ~verifier();
  verifier(verifier&&) noexcept;

  verdict check(const request& what, timestamp now) const;

 private:
  class [[gnu::visibility("hidden")]] engine;
  std::unique_ptr<const engine> engine_;
};

// The headers that a provider sends with this body, signed now with the first of the keys: a verifier made of
// the same signing accepts them. `id` is the webhook-id of scheme::standard, and nothing to the others.
// Throws invalid_argument without a key, for a public one (whpk_), and for options that no verifier takes.
std::vector<std::pair<std::string, std::string>> sign(const signing& how, std::string_view body,
                                                      timestamp now, std::string_view id = {});

}  // namespace settle::inline v0::webhook

#pragma GCC visibility pop
