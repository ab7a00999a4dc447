// The names of attributes: what CloudEvents allows, and the one list of those that only CloudEvents and
// Settle write. Every entrance goes by it: publish() and the SQL function refuse a reserved name, and a relay
// renames it in a row that is already committed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "settle/event.hpp"

namespace settle::inline v0 {

enum class attribute_writer {
  cloudevents,  // the message itself
  cause,        // publish_options::cause; where there are no such options, a header
  natural_key,  // publish_once
  relay,        // what consumers judge copies by
  dead_letter,  // the event on "<topic>.dlq"
  replay_mark,  // which dead letter's replay an event is, and for whom
  replay_note,  // what a handler is told about the replay that it runs; never sent
};

struct reserved_attribute {
  std::string_view name;
  attribute_writer writer;
};

// In the order of their names.
std::span<const reserved_attribute> reserved_attributes();

// Nothing: anybody may write it.
std::optional<attribute_writer> writer_of(std::string_view name);

// By CloudEvents: only a–z and 0–9.
bool is_attribute_name(std::string_view name);

// Headers that nobody has checked, as attributes that may be sent: names in lower-case letters and digits,
// control characters in values as spaces, and "header" before a reserved name unless its writer is `allowed`.
// What is lost is a name without any letter or digit, and one that becomes the same as another.
struct checked_headers {
  attributes extensions;
  std::string changes;  // "id to headerid, Tenant-Id to tenantid"; empty: there are none
};
checked_headers check_headers(attributes given, std::span<const attribute_writer> allowed);

// As above: with "header" before it.
std::string set_aside(std::string_view reserved);

// Dead letters that were announced before 0.1.0 have names with hyphens, "settle-dlq-reason", which no
// CloudEvents client accepts. Until 0.2.0 they are read as if they had been written with the names of today.
void rename_old_attributes(attributes& of);

}  // namespace settle::inline v0
