// A message as people and as machines read it.
#pragma once

#include <string>

#include "settle/broker.hpp"

namespace settle::cli {

// Several lines: what and when, the CloudEvents attributes, the payload if it is text.
std::string message_text(const message& of);

// One line: CloudEvents 1.0 in the structured JSON format.
std::string message_json(const message& of);

}  // namespace settle::cli
