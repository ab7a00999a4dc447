// Assertions that stay on in release: a bug stops the process instead of writing something wrong.
#pragma once

namespace settle::inline v0 {

[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line) noexcept;

}  // namespace settle

#define SETTLE_CHECK(condition, why)                               \
  do {                                                             \
    if (!(condition)) [[unlikely]]                                 \
      ::settle::check_failed(#condition, why, __FILE__, __LINE__); \
  } while (false)
