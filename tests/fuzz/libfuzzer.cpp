// What libFuzzer calls: the entry that SETTLE_FUZZ_ENTRY names.
#include <cstddef>
#include <cstdint>

#include "fuzz/entries.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  settle::fuzz::SETTLE_FUZZ_ENTRY({reinterpret_cast<const char*>(data), size});
  return 0;
}
