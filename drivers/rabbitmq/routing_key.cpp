#include "rabbitmq/routing_key.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/lanes.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

std::optional<std::string> value_of(const message& m, std::string_view name) {
  if (name == "topic") return m.topic;
  if (name == "type") return m.type;
  if (name == "key") return m.key;
  if (name == "subject") return m.subject;
  if (name == "lane") return std::to_string(lane_of(m.key, m.id));
  return std::nullopt;
}

// Calls `text` for what stands for itself and `name` for what stands in braces; false: a brace is not closed.
bool read(std::string_view by, const auto& text, const auto& name) {
  while (!by.empty()) {
    const auto open = by.find('{');
    text(by.substr(0, open));
    if (open == std::string_view::npos) return true;
    const auto close = by.find('}', open);
    if (close == std::string_view::npos) return false;
    name(by.substr(open + 1, close - open - 1));
    by.remove_prefix(close + 1);
  }
  return true;
}

}  // namespace

std::string routing_key_of(const message& m, std::string_view by) {
  std::string made;
  read(
      by, [&](std::string_view text) { made += text; },
      [&](std::string_view name) { made += value_of(m, name).value_or(std::string()); });
  return made;
}

std::string unusable_routing_key(std::string_view by) {
  std::string why;
  const bool closed = read(
      by, [](std::string_view) {},
      [&](std::string_view name) {
        if (!value_of({}, name))
          why = fmt::format("{{{}}} is none of {{topic}}, {{type}}, {{key}}, {{subject}} and {{lane}}", name);
      });
  return closed ? why : "a { has no }";
}

}  // namespace settle::inline v0::rabbitmq
