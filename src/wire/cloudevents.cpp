#include <array>
#include <utility>

#include "base/time_text.hpp"
#include "settle/driver/broker.hpp"
#include "wire/attribute_names.hpp"

namespace settle::inline v0 {
namespace {

using enum attribute_writer;

// Everything but what the message has of its own.
constexpr std::array extension_writers{cause, natural_key, relay, dead_letter, replay_mark, replay_note};

// Whoever stored the message may have let anything pass.
attributes valid_extensions(attributes of) {
  rename_old_attributes(of);
  return check_headers(std::move(of), extension_writers).extensions;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cloudevents_attributes(const message& of) {
  std::vector<std::pair<std::string, std::string>> all{
      {"specversion", "1.0"}, {"id", of.id}, {"source", of.source}, {"type", of.type}};
  const auto add = [&](const char* name, const std::string& content) {
    if (!content.empty()) all.emplace_back(name, content);
  };
  add("subject", of.subject);
  add("time", to_rfc3339(of.time));
  add("datacontenttype", of.content_type);
  add("partitionkey", of.key);
  for (const auto& [name, content] : valid_extensions(of.extensions)) all.emplace_back(name, content);
  return all;
}

}  // namespace settle
