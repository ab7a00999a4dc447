// The few things that are needed of libcrypto. Nothing of OpenSSL is seen beyond crypto.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace settle::hooks {

using mac = std::array<std::uint8_t, 32>;

// HMAC-SHA256 over the parts one after the other. The body is not copied for it.
mac hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts);

// Takes the same time wherever they differ. The lengths are no secret.
bool equal_in_constant_time(std::string_view a, std::string_view b);

struct comparison {
  bool matched = false;
  std::size_t compared = 0;  // pairs: always all of them
};
// Whether any of the candidates, each of them 32 bytes, is any of the codes. Every pair is compared.
comparison compare_all(std::span<const mac> codes, std::span<const std::string> candidates);

constexpr std::size_t ed25519_key_bytes = 32;
constexpr std::size_t ed25519_signature_bytes = 64;
bool ed25519_verify(std::string_view public_key, std::string_view signature, std::string_view text);

}  // namespace settle::hooks
