#include "rabbitmq/wire_message.hpp"

#include <algorithm>

#include "base/time_text.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

constexpr std::string_view prefix = "cloudEvents_";
constexpr std::string_view other_prefix = "cloudEvents:";
constexpr std::size_t short_text_max = 255;  // of a property
constexpr std::uint8_t durable = 2;

std::optional<std::string> text_of(const amqp_field_value_t& value) {
  switch (value.kind) {
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES:
      return std::string(as_view(value.value.bytes));
    case AMQP_FIELD_KIND_BOOLEAN:
      return value.value.boolean != 0 ? "true" : "false";
    case AMQP_FIELD_KIND_I8:
      return std::to_string(value.value.i8);
    case AMQP_FIELD_KIND_I16:
      return std::to_string(value.value.i16);
    case AMQP_FIELD_KIND_I32:
      return std::to_string(value.value.i32);
    case AMQP_FIELD_KIND_I64:
      return std::to_string(value.value.i64);
    default:
      return std::nullopt;
  }
}

// The attribute that a header is; nothing: it is none.
std::string_view attribute_of(std::string_view header) {
  for (const auto one : {prefix, other_prefix})
    if (header.starts_with(one)) return header.substr(one.size());
  return {};
}

void set_attribute(message& of, std::string_view name, std::string&& value) {
  if (name == "id")
    of.id = std::move(value);
  else if (name == "source")
    of.source = std::move(value);
  else if (name == "type")
    of.type = std::move(value);
  else if (name == "subject")
    of.subject = std::move(value);
  else if (name == "time")
    of.time = from_rfc3339(value).value_or(timestamp{});
  else if (name == "partitionkey")
    of.key = std::move(value);
  else if (name == "datacontenttype")
    of.content_type = std::move(value);
  else if (name != "specversion")
    of.extensions[std::string(name)] = std::move(value);
}

}  // namespace

const std::string* wire_message::header(std::string_view name) const {
  const auto found =
      std::ranges::find(headers, name, [](const auto& one) { return std::string_view(one.first); });
  return found == headers.end() ? nullptr : &found->second;
}

wire_message read_properties(const amqp_basic_properties_t& of) {
  wire_message read;
  if ((of._flags & AMQP_BASIC_CONTENT_TYPE_FLAG) != 0) read.content_type = as_view(of.content_type);
  if ((of._flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0) read.message_id = as_view(of.message_id);
  if ((of._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return read;
  for (int i = 0; i < of.headers.num_entries; ++i) {
    const auto& one = of.headers.entries[i];
    if (auto text = text_of(one.value)) read.headers.emplace_back(as_view(one.key), std::move(*text));
  }
  return read;
}

message read_message(wire_message&& from, const std::string& topic) {
  message read;
  read.topic = topic;
  read.content_type = std::move(from.content_type);
  read.id = std::move(from.message_id);
  for (auto& [name, value] : from.headers)
    if (const auto attribute = attribute_of(name); !attribute.empty())
      set_attribute(read, attribute, std::move(value));
  read.payload = std::move(from.body);
  return read;
}

outgoing::outgoing(const message& what, std::uint64_t number) : attributes_(cloudevents_attributes(what)) {
  for (auto& [name, value] : attributes_) {
    if (name == "datacontenttype") continue;
    name.insert(0, prefix);
    headers_.add(name, std::string_view(value));
  }
  headers_.add(number_header, static_cast<std::int64_t>(number));
  properties_._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties_.headers = headers_.get();
  properties_.delivery_mode = durable;
  if (!what.content_type.empty()) {
    properties_._flags |= AMQP_BASIC_CONTENT_TYPE_FLAG;
    properties_.content_type = as_bytes(what.content_type);
  }
  if (what.id.size() <= short_text_max) {
    properties_._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
    properties_.message_id = as_bytes(what.id);
  }
}

}  // namespace settle::inline v0::rabbitmq
