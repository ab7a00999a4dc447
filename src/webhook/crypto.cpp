#include "webhook/crypto.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>
#include <stdexcept>

namespace settle::hooks {
namespace {

template <auto free>
struct deleter {
  template <class T>
  void operator()(T* what) const {
    free(what);
  }
};
using mac_context = std::unique_ptr<EVP_MAC_CTX, deleter<EVP_MAC_CTX_free>>;
using digest_context = std::unique_ptr<EVP_MD_CTX, deleter<EVP_MD_CTX_free>>;
using public_key_handle = std::unique_ptr<EVP_PKEY, deleter<EVP_PKEY_free>>;

// Out of memory, or a libcrypto without SHA-256: nothing that a sender could bring about.
void require(bool worked) {
  if (!worked) throw std::runtime_error("libcrypto cannot compute HMAC-SHA256");
}

const std::uint8_t* bytes(std::string_view of) { return reinterpret_cast<const std::uint8_t*>(of.data()); }

// Looked up once: it is the larger part of a small computation.
EVP_MAC* hmac() {
  static EVP_MAC* const found = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  require(found != nullptr);
  return found;
}

}  // namespace

mac hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  const mac_context with(EVP_MAC_CTX_new(hmac()));
  require(with != nullptr);
  char digest[] = "SHA256";
  const OSSL_PARAM how[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                            OSSL_PARAM_construct_end()};
  require(EVP_MAC_init(with.get(), bytes(key), key.size(), how) == 1);
  for (const auto part : parts) require(EVP_MAC_update(with.get(), bytes(part), part.size()) == 1);
  mac out{};
  std::size_t written = 0;
  require(EVP_MAC_final(with.get(), out.data(), &written, out.size()) == 1 && written == out.size());
  return out;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

comparison compare_all(std::span<const mac> codes, std::span<const std::string> candidates) {
  comparison result;
  unsigned matches = 0;
  for (const auto& code : codes) {
    const std::string_view expected(reinterpret_cast<const char*>(code.data()), code.size());
    for (const auto& candidate : candidates) {
      matches |= static_cast<unsigned>(equal_in_constant_time(expected, candidate));
      ++result.compared;
    }
  }
  result.matched = matches != 0;
  return result;
}

bool ed25519_verify(std::string_view public_key, std::string_view signature, std::string_view text) {
  if (public_key.size() != ed25519_key_bytes || signature.size() != ed25519_signature_bytes) return false;
  const public_key_handle key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes(public_key), public_key.size()));
  const digest_context with(EVP_MD_CTX_new());
  if (!key || !with) return false;
  return EVP_DigestVerifyInit(with.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(with.get(), bytes(signature), signature.size(), bytes(text), text.size()) == 1;
}

}  // namespace settle::hooks
