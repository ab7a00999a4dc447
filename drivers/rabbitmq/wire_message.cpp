#include "rabbitmq/wire_message.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "base/time_text.hpp"
#include "settle/driver/broker.hpp"
#include "wire/attribute_names.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

constexpr std::string_view prefix = "cloudEvents_";
constexpr std::string_view other_prefix = "cloudEvents:";
constexpr std::size_t short_text_max = 255;  // of a property
constexpr std::uint8_t durable = 2;

boost::json::value json_of(const amqp_field_value_t& value);

boost::json::object json_of(const amqp_table_t& of) {
  boost::json::object made;
  for (int i = 0; i < of.num_entries; ++i)
    made[std::string(as_view(of.entries[i].key))] = json_of(of.entries[i].value);
  return made;
}

boost::json::value json_of(const amqp_field_value_t& value) {
  switch (value.kind) {
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES:
      return boost::json::string(as_view(value.value.bytes));
    case AMQP_FIELD_KIND_BOOLEAN:
      return value.value.boolean != 0;
    case AMQP_FIELD_KIND_I8:
      return value.value.i8;
    case AMQP_FIELD_KIND_I16:
      return value.value.i16;
    case AMQP_FIELD_KIND_I32:
      return value.value.i32;
    case AMQP_FIELD_KIND_I64:
      return value.value.i64;
    case AMQP_FIELD_KIND_TIMESTAMP:
      return static_cast<std::int64_t>(value.value.u64);
    case AMQP_FIELD_KIND_TABLE:
      return json_of(value.value.table);
    case AMQP_FIELD_KIND_ARRAY: {
      boost::json::array made;
      for (int i = 0; i < value.value.array.num_entries; ++i)
        made.push_back(json_of(value.value.array.entries[i]));
      return made;
    }
    default:
      return nullptr;
  }
}

std::optional<std::string> text_of(const amqp_field_value_t& value) {
  switch (value.kind) {
    case AMQP_FIELD_KIND_TABLE:
    case AMQP_FIELD_KIND_ARRAY:
      return boost::json::serialize(json_of(value));
    case AMQP_FIELD_KIND_TIMESTAMP:
      return std::to_string(value.value.u64);
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
  const auto add = [&](amqp_flags_t flag, const char* name, const amqp_bytes_t& value) {
    if ((of._flags & flag) != 0) read.properties.emplace_back(name, as_view(value));
  };
  add(AMQP_BASIC_TYPE_FLAG, "type", of.type);
  add(AMQP_BASIC_CORRELATION_ID_FLAG, "correlation-id", of.correlation_id);
  add(AMQP_BASIC_APP_ID_FLAG, "app-id", of.app_id);
  if ((of._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0)
    read.properties.emplace_back("timestamp", std::to_string(of.timestamp));
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

message read_foreign_message(wire_message&& from, const std::string& topic, const mapper& by) {
  auto properties = std::move(from.properties);
  if (!from.message_id.empty()) properties.emplace_back("message-id", from.message_id);
  const auto headers = from.headers;
  auto read = read_message(std::move(from), topic);
  by.fill(read, {properties, headers});
  attributes others;
  for (const auto& [name, value] : headers)
    if (attribute_of(name).empty()) others.emplace(name, value);
  for (auto& [name, value] : check_headers(std::move(others), {}).extensions)
    read.extensions.emplace(name, std::move(value));
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
