// Signs webhooks as providers do, for tests. The golden vectors in verifier_test.cpp hold this and the
// verifier to the specifications.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "settle/webhook_signature.hpp"
#include "webhook/crypto.hpp"

namespace settle::test {

inline std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    for (const int digit : {byte >> 4, byte & 15}) out += "0123456789abcdef"[digit];
  }
  return out;
}

inline std::string to_base64(std::string_view bytes) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const auto part = bytes.substr(i, 3);
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < part.size() ? static_cast<std::uint8_t>(part[j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) out += j <= part.size() ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

inline std::string code_of(std::string_view secret, std::string_view text) {
  const auto code = hooks::hmac_sha256(secret, {text});
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

inline std::string seconds_of(timestamp at) {
  return std::to_string(std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count());
}

// The value of Stripe-Signature.
inline std::string stripe_signature(std::string_view secret, timestamp at, std::string_view body) {
  const auto time = seconds_of(at);
  return "t=" + time + ",v1=" + to_hex(code_of(secret, time + "." + std::string(body)));
}

// The value of webhook-signature; the key as bytes.
inline std::string standard_signature(std::string_view key, std::string_view id, timestamp at,
                                      std::string_view body) {
  return "v1," + to_base64(code_of(key, std::string(id) + "." + seconds_of(at) + "." + std::string(body)));
}

}  // namespace settle::test
