#include "cli/message_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/encoding.hpp"
#include "base/text.hpp"
#include "base/time_text.hpp"
#include "cli/text.hpp"
#include "settle/driver/broker.hpp"
#include "settle/http.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t nesting_max = 512;  // deeper JSON is passed on as bytes

}  // namespace

bool is_json(std::string_view payload) {
  json::parse_options options;
  options.max_depth = nesting_max;
  json::error_code failed;
  json::stream_parser parser({}, options);
  parser.write({payload.data(), payload.size()}, failed);
  if (!failed) parser.finish(failed);
  return !failed;
}

bool names_json(std::string_view content_type) {
  const auto media = content_type.substr(0, content_type.find_first_of("; \t"));
  constexpr std::string_view name = "json";
  if (media.size() <= name.size() || !http::same_name(media.substr(media.size() - name.size()), name))
    return false;
  const char before = media[media.size() - name.size() - 1];
  return before == '/' || before == '+';
}

namespace {

// JSON is passed on as it was written: reading and writing it again would round large numbers. Line
// breaks can stand only between its tokens, so blanks may take their place.
std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  return text;
}

std::string data_member(const message& of) {
  if (of.payload.empty()) return {};
  if (names_json(of.content_type)) {
    if (is_utf8(of.payload) && is_json(of.payload)) return ",\"data\":" + on_one_line(of.payload);
  } else if (is_printable(of.payload)) {
    return ",\"data\":" + json::serialize(json::value(of.payload));
  }
  return ",\"data_base64\":\"" + to_base64(of.payload) + '"';
}

std::string payload_text(const message& of) {
  if (of.payload.empty()) return "(empty)";
  if (!is_printable(of.payload)) return fmt::format("<{}>", counted(std::ssize(of.payload), "byte"));
  std::string out;
  for (const char c : of.payload) {
    if (c == '\r') continue;  // it would let the text overwrite its own line
    out += c;
    if (c == '\n') out += "    ";
  }
  out.erase(out.find_last_not_of(" \n") + 1);
  return out;
}

}  // namespace

std::string message_text(const message& of) {
  auto out = fmt::format("{}  {}", to_rfc3339(of.time), for_terminal(of.type));
  if (!of.key.empty()) out += fmt::format("  key {}", for_terminal(of.key));
  out += '\n';
  for (const auto& [name, content] : cloudevents_attributes(of)) {
    // already in the first line, or the same for all
    if (name == "time" || name == "type" || name == "partitionkey" || name == "specversion") continue;
    out += fmt::format("    {}: {}\n", for_terminal(name), for_terminal(content));
  }
  return out + "    " + payload_text(of) + '\n';
}

std::string message_json(const message& of) {
  json::object attributes;
  for (const auto& [name, content] : cloudevents_attributes(of)) attributes[name] = safe_json_text(content);
  auto line = json::serialize(attributes);
  line.insert(line.size() - 1, data_member(of));
  return line + '\n';
}

}  // namespace settle::cli
