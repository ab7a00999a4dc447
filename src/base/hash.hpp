// A hash that is fixed for ever: lanes and partitions are chosen by it, and a key must find its old ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace settle::inline v0 {

// FNV-1a over the bytes, then a 64-bit finalizer so that the low bits depend on all of the input.
constexpr std::uint64_t stable_hash(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : bytes) {
    h ^= static_cast<std::uint8_t>(c);
    h *= 0x100000001b3;
  }
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccd;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53;
  h ^= h >> 33;
  return h;
}

}  // namespace settle
