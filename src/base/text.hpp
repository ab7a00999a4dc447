// Checks on text that comes from outside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace settle::inline v0 {

bool is_utf8(std::string_view text);

// Without the spaces and tabs at both ends, as HTTP reads the value of a header.
std::string_view without_outer_space(std::string_view text);

struct name_rule {
  std::string_view what;  // "topic", as the error should call it
  std::size_t bytes_max;
  bool may_be_empty = false;
};

// Throws invalid_name unless `text` is UTF-8 without control characters (NUL among them) and within
// the rule's length.
void check_name(std::string_view text, const name_rule& rule);

// Foreign text as it can be stored anywhere: what is not UTF-8 becomes U+FFFD, what is beyond `bytes_max`
// goes, at the boundary of a character, and control characters become spaces; storable_text leaves line
// breaks and tabs.
std::string storable_text(std::string_view text, std::size_t bytes_max);
std::string one_line(std::string_view text, std::size_t bytes_max);

}  // namespace settle
