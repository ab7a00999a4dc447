#include "base/sortable.hpp"

#include <array>
#include <charconv>

#include "base/check.hpp"

namespace settle::inline v0 {

std::string sortable(std::initializer_list<std::int64_t> numbers) {
  std::string text;
  for (const auto number : numbers) {
    SETTLE_CHECK(number >= 0, "a number that is sorted as text must not be negative");
    std::array<char, 20> digits;
    const auto* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    const auto count = static_cast<std::size_t>(end - digits.data());
    text += static_cast<char>('a' + count - 1);
    text.append(digits.data(), count);
  }
  return text;
}

}  // namespace settle::inline v0
