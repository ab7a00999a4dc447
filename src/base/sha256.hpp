// SHA-256 (FIPS 180-4), where a hash must be the same in C++ and in SQL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace settle::inline v0 {

using sha256_digest = std::array<std::uint8_t, 32>;

sha256_digest sha256(std::string_view bytes);

// The same without the processor's instructions for it, as on one that has none.
sha256_digest sha256_anywhere(std::string_view bytes);

}  // namespace settle::inline v0
