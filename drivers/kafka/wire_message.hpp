// A message as it is in the log: key, headers, a value. CloudEvents in binary mode is written: every
// attribute is a header "ce_<name>", but for datacontenttype, which is "content-type"; the key is the
// partitionkey. Structured mode, a JSON document as the value, is read as well.
#pragma once

#include <string>
#include <string_view>

#include "settle/broker.hpp"
#include "wire/mapping.hpp"

namespace settle::inline v0::kafka {

using headers = named_texts;

headers headers_of(const message& what);

struct wire_message {
  std::string_view key = {};  // empty: none
  kafka::headers headers = {};
  std::string_view value = {};
};

// What the message says of itself; `topic` is known from where it was found. A structured event that cannot
// be read, and a message of somebody who writes no events, have no id, and its value is the payload.
message read_message(wire_message&& from, const std::string& topic);
// The same of a message that others have published. Properties are what the log knows of it.
message read_foreign_message(wire_message&& from, const std::string& topic, const named_texts& properties,
                             const mapper& by);

}  // namespace settle::inline v0::kafka
