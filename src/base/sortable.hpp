// Numbers as text that sorts, byte by byte, as they do.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace settle::inline v0 {

// For each number a letter that tells how many digits follow, and its digits: (3, 120) is "a3c120". What
// begins with the same numbers and has fewer of them sorts first. None may be negative.
std::string sortable(std::initializer_list<std::int64_t> numbers);

}  // namespace settle::inline v0
