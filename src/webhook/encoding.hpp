// Hexadecimal and base64 as signatures and keys are written in them. Strict: nothing but the alphabet, whole
// groups, and for base64 the padding it asks for. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace settle::hooks {

std::optional<std::string> from_hex(std::string_view text);  // either case
std::optional<std::string> from_base64(std::string_view text);

}  // namespace settle::hooks
