// Hexadecimal and base64. Reading is strict: nothing but the alphabet, whole groups, and for base64 the
// padding it asks for; so two texts never mean the same bytes, but for the case of hexadecimal digits. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace settle::inline v0 {

std::string to_hex(std::string_view bytes);  // lower case
std::string to_base64(std::string_view bytes);

std::optional<std::string> from_hex(std::string_view text);  // either case
std::optional<std::string> from_base64(std::string_view text);

}  // namespace settle::inline v0
