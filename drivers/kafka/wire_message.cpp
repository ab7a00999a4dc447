#include "kafka/wire_message.hpp"

#include <algorithm>
#include <utility>

#include "settle/driver/broker.hpp"
#include "wire/attribute_names.hpp"
#include "wire/structured_event.hpp"

namespace settle::inline v0::kafka {
namespace {

constexpr std::string_view prefix = "ce_";
constexpr std::string_view content_type = "content-type";

}  // namespace

headers headers_of(const message& what) {
  headers made;
  for (auto& [name, value] : cloudevents_attributes(what))
    made.emplace_back(name == "datacontenttype" ? std::string(content_type) : std::string(prefix) + name,
                      std::move(value));
  return made;
}

message read_message(wire_message&& from, const std::string& topic) {
  const auto type = std::ranges::find(from.headers, content_type, &headers::value_type::first);
  if (type != from.headers.end() && is_structured_event(type->second)) {
    if (auto read = read_structured_event(from.value)) {
      read->topic = topic;
      if (read->key.empty()) read->key = from.key;
      return std::move(*read);
    }
  }
  message read;
  read.topic = topic;
  for (auto& [name, value] : from.headers)
    if (name == content_type)
      read.content_type = std::move(value);
    else if (name.starts_with(prefix))
      set_attribute(read, name.substr(prefix.size()), std::move(value));
  if (read.key.empty()) read.key = from.key;
  read.payload = from.value;
  return read;
}

message read_foreign_message(wire_message&& from, const std::string& topic, const named_texts& properties,
                             const mapper& by) {
  const auto all = from.headers;
  const auto key = std::exchange(from.key, {});
  auto read = read_message(std::move(from), topic);
  by.fill(read, {properties, all});
  if (read.key.empty()) read.key = key;
  attributes others;
  for (const auto& [name, value] : all)
    if (name != content_type && !name.starts_with(prefix)) others.emplace(name, value);
  for (auto& [name, value] : check_headers(std::move(others), {}).extensions)
    read.extensions.emplace(name, std::move(value));
  return read;
}

}  // namespace settle::inline v0::kafka
