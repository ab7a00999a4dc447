// Checks on text that comes from outside.
#pragma once

#include <cstddef>
#include <string_view>

namespace settle::inline v0 {

bool is_utf8(std::string_view text);

struct name_rule {
  std::string_view what;  // "topic", as the error should call it
  std::size_t bytes_max;
  bool may_be_empty = false;
};

// Throws invalid_name unless `text` is UTF-8 without control characters (NUL among them) and within
// the rule's length.
void check_name(std::string_view text, const name_rule& rule);

}  // namespace settle
