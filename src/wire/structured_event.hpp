// CloudEvents as brokers that others write to bring them: attributes by name, and whole events as JSON
// documents (structured mode, application/cloudevents+json).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settle/broker.hpp"

namespace settle::inline v0 {

// An attribute that was read goes where messages have it. Unknown ones are extensions; specversion goes.
void set_attribute(message& of, std::string_view name, std::string&& value);

// By the content type, with or without parameters. Batches are none.
bool is_structured_event(std::string_view content_type);

// Nothing: it is no such document. `data` is the payload: a text as it is unless it is JSON by its content
// type, everything else as JSON; `data_base64` is decoded.
std::optional<message> read_structured_event(std::string_view json);

}  // namespace settle::inline v0
