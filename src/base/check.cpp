#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace settle::inline v0 {

void check_failed(const char* condition, const char* why, const char* file, int line) noexcept {
  std::fprintf(stderr, "settle: bug: %s (%s) at %s:%d\n", why, condition, file, line);
  std::abort();
}

}  // namespace settle
