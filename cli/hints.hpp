// Commands that a message tells somebody to type.
#pragma once

#include <string>
#include <string_view>

namespace settle::cli {

// The text with `given` added to every command in it, so that it means the same stores when it is typed:
// "run `settle relay`" becomes "run `settle relay --database shop.db`". Not to one that asks for help, or has
// stores of its own.
std::string with_given(std::string_view text, std::string_view given);

// " NAME VALUE", quoted for a shell where that is needed.
std::string argument_text(std::string_view name, std::string_view content);

}  // namespace settle::cli
