// A message as people and as machines read it.
#pragma once

#include <string>
#include <string_view>

#include "settle/broker.hpp"

namespace settle::cli {

// Several lines: what and when, the CloudEvents attributes, the payload if it is text.
std::string message_text(const message& of);

// One line: CloudEvents 1.0 in the structured JSON format.
std::string message_json(const message& of);

// Whether a payload is one JSON text, and whether a content type says so: application/json,
// application/vnd.example+json, in any case, with or without parameters.
bool is_json(std::string_view payload);
bool names_json(std::string_view content_type);

}  // namespace settle::cli
