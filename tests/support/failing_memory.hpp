// Memory that runs out where a test says so. Replaces operator new, so it belongs in one source file of a
// program of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

namespace settle::test {

class failing_memory {
 public:
  static constexpr std::int64_t for_good = std::numeric_limits<std::int64_t>::max() / 2;

  // From the n-th allocation on so many fail, in all threads that are not spared, until the end of the scope.
  failing_memory(std::int64_t n, std::int64_t times) {
    first_ = n;
    last_ = n + times;
    count_ = 0;
    armed_ = true;
  }
  ~failing_memory() { armed_ = false; }
  failing_memory(const failing_memory&) = delete;
  failing_memory& operator=(const failing_memory&) = delete;

  static bool struck() { return count_ > first_; }
  static bool strikes_now() {
    if (!armed_.load(std::memory_order_relaxed) || spared()) return false;
    const auto n = count_++;
    return n >= first_ && n < last_;
  }

  // The thread of the test itself.
  static bool& spared() {
    thread_local bool so = false;
    return so;
  }

 private:
  static inline std::atomic<bool> armed_ = false;
  static inline std::atomic<std::int64_t> count_ = 0;
  static inline std::atomic<std::int64_t> first_ = 0;
  static inline std::atomic<std::int64_t> last_ = 0;
};

}  // namespace settle::test

// All of them, because a sanitizer has its own of those that are missing, and takes one pair for another's.
// Not inlined: the compiler would see malloc() and operator delete, or the other way round, and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return settle::test::failing_memory::strikes_now() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, tag);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* made = operator new(bytes, std::nothrow)) return made;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return operator new(bytes); }
[[gnu::noinline]] void operator delete(void* made) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete[](void* made) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete(void* made, std::size_t) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete[](void* made, std::size_t) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete(void* made, const std::nothrow_t&) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete[](void* made, const std::nothrow_t&) noexcept { std::free(made); }
