// Flat string-to-string JSON objects: how attributes are stored beside a message.
#pragma once

#include <string>
#include <string_view>

#include "settle/event.hpp"

namespace settle::inline v0 {

// An empty map gives an empty string: most events have none, and an empty column costs nothing.
std::string to_json(const attributes& values);

// Throws decode_failed on anything but an object. Values that are not strings become their JSON text.
attributes attributes_from_json(std::string_view text);

}  // namespace settle
