#include "base/sha256.hpp"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace settle::inline v0 {
namespace {

using words = std::array<std::uint32_t, 8>;

// The fractions of the square roots of the first 8 primes, and of the cube roots of the first 64.
constexpr words initial{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::size_t block_bytes = 64;

std::uint32_t big_endian(const char* at) {
  const auto byte = [&](int i) { return std::uint32_t{static_cast<std::uint8_t>(at[i])}; };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

void mix_anywhere(words& state, const char* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < 64; ++i) {
    const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const words mixed{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += mixed[i];
}

using mixer = void (*)(words& state, const char* block);

#if defined(__x86_64__)
// The same with the processor's own instructions, four rounds at a time: a third of the time for a short
// key. They want the state as (a, b, e, f) and (c, d, g, h), the first word highest.
__attribute__((target("sha,sse4.1"))) void mix_by_instruction(words& state, const char* block) {
  const auto load = [](const void* from) __attribute__((target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const auto dcba = load(&state[0]);
  const auto hgfe = load(&state[4]);
  const auto badc = _mm_shuffle_epi32(dcba, 0xb1);
  const auto efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  const auto abef_before = _mm_alignr_epi8(badc, efgh, 8);
  const auto cdgh_before = _mm_blend_epi16(efgh, badc, 0xf0);
  auto abef = abef_before;
  auto cdgh = cdgh_before;
  const auto swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);  // to big-endian words
  __m128i w[4];  // the last 16 words of the schedule
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {
    auto& now = w[i % 4];
    if (i < 4) {
      now = _mm_shuffle_epi8(load(block + 16 * i), swap);
    } else {
      const auto& last = w[(i + 3) % 4];
      const auto seven_back = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
      now = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), seven_back);
      now = _mm_sha256msg2_epu32(now, last);
    }
    const auto added = _mm_add_epi32(now, load(&constants[4 * i]));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
  }
  const auto feba = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
  const auto dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

mixer best_mixer() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
  const bool sse = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0;
  return sha && sse ? mix_by_instruction : mix_anywhere;
}
#else
mixer best_mixer() { return mix_anywhere; }
#endif

sha256_digest digest_of(std::string_view bytes, mixer mix) {
  auto state = initial;
  std::size_t at = 0;
  for (; bytes.size() - at >= block_bytes; at += block_bytes) mix(state, bytes.data() + at);
  const auto rest = bytes.substr(at);
  std::array<char, 2 * block_bytes> last{};  // the rest, a mark, zeros, and the length in bits
  std::ranges::copy(rest, last.begin());
  last[rest.size()] = '\x80';
  const auto end = rest.size() < block_bytes - 8 ? block_bytes : 2 * block_bytes;
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) last[end - 1 - i] = static_cast<char>(bits >> (8 * i) & 0xff);
  for (std::size_t i = 0; i < end; i += block_bytes) mix(state, last.data() + i);
  sha256_digest digest{};
  for (std::size_t i = 0; i < state.size(); ++i) {  // by words: the compiler makes one store of the four
    digest[4 * i] = static_cast<std::uint8_t>(state[i] >> 24);
    digest[4 * i + 1] = static_cast<std::uint8_t>(state[i] >> 16);
    digest[4 * i + 2] = static_cast<std::uint8_t>(state[i] >> 8);
    digest[4 * i + 3] = static_cast<std::uint8_t>(state[i]);
  }
  return digest;
}

}  // namespace

sha256_digest sha256(std::string_view bytes) {
  static const auto mix = best_mixer();
  return digest_of(bytes, mix);
}

sha256_digest sha256_anywhere(std::string_view bytes) { return digest_of(bytes, mix_anywhere); }

}  // namespace settle::inline v0
