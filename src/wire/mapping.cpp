#include "wire/mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "base/time_text.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

namespace json = boost::json;

const std::string* find(const named_texts& among, std::string_view name) {
  const auto found =
      std::ranges::find(among, name, [](const auto& one) { return std::string_view(one.first); });
  return found == among.end() ? nullptr : &found->second;
}

// Of an object or a list there is no text that everybody would write the same way.
std::optional<std::string> scalar_text(const json::value& of) {
  if (const auto* text = of.if_string()) return std::string(*text);
  if (of.is_number() || of.is_bool()) return json::serialize(of);
  return std::nullopt;
}

// Seconds have ten digits for the next centuries, milliseconds thirteen.
std::optional<timestamp> time_of(std::string_view text) {
  if (const auto written = from_rfc3339(text)) return written;
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t seconds_max = 100'000'000'000;
  constexpr std::int64_t milliseconds_max = seconds_max * 1000;
  if (failed != std::errc() || end != text.data() + text.size() || number < 0 || number > milliseconds_max)
    return std::nullopt;
  return timestamp(number < seconds_max ? duration(std::chrono::seconds(number))
                                        : duration(std::chrono::milliseconds(number)));
}

}  // namespace

// Reads from one message. Its payload is parsed when the first template asks for it.
class mapper::reader {
 public:
  reader(const message& of, const foreign_parts& from) : of_(of), from_(from) {}

  std::optional<std::string> first_of(const alternatives& all) {
    for (const auto& one : all)
      if (auto text = whole(one); text && !text->empty()) return text;
    return std::nullopt;
  }

 private:
  std::optional<std::string> whole(const text_template& of) {
    std::string made;
    for (const auto& one : of) {
      const auto text = value_of(one);
      if (!text || text->empty()) return std::nullopt;
      made += *text;
    }
    return made;
  }

  std::optional<std::string> value_of(const part& one) {
    if (one.from == kind::text) return one.name;
    if (one.from == kind::payload) return at(one.name);
    const auto* found = find(one.from == kind::property ? from_.properties : from_.headers, one.name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }

  std::optional<std::string> at(const std::string& pointer) {
    if (!parsed_) {
      boost::system::error_code failed;
      parsed_ = json::parse(of_.payload, failed);
      if (failed) parsed_ = json::value();
    }
    boost::system::error_code missing;
    const auto* found = parsed_->find_pointer(pointer, missing);
    return found == nullptr ? std::nullopt : scalar_text(*found);
  }

  const message& of_;
  const foreign_parts& from_;
  std::optional<json::value> parsed_;
};

mapper::text_template mapper::read(const char* attribute, std::string_view given) {
  const auto refuse = [&](std::string_view why) {
    throw error(errc::invalid_argument, fmt::format("the mapping of {}, {}: {}", attribute, given, why));
  };
  text_template made;
  for (std::size_t at = 0; at < given.size();) {
    const auto open = given.find('{', at);
    if (open != at) made.push_back({kind::text, std::string(given.substr(at, open - at))});
    if (open == std::string_view::npos) break;
    const auto close = given.find('}', open);
    if (close == std::string_view::npos) refuse("a { has no }");
    const auto inside = given.substr(open + 1, close - open - 1);
    const auto colon = inside.find(':');
    const auto word = inside.substr(0, colon);
    const std::string name(colon == std::string_view::npos ? "" : inside.substr(colon + 1));
    if (word != "property" && word != "header" && word != "payload")
      refuse("a part is {property:NAME}, {header:NAME} or {payload:/PLACE}");
    if (name.empty() || (word == "payload" && name[0] != '/'))
      refuse(word == "payload" ? "a place in the payload begins with /" : "a part has a name");
    made.push_back({word == "property" ? kind::property
                    : word == "header" ? kind::header
                                       : kind::payload,
                    name});
    at = close + 1;
  }
  return made;
}

mapper::alternatives mapper::read(const char* attribute, const std::vector<std::string>& given) {
  alternatives made;
  for (const auto& one : given) made.push_back(read(attribute, std::string_view(one)));
  return made;
}

mapper::mapper(const message_mapping& of)
    : id_(read("id", of.id)),
      source_(read("source", of.source)),
      type_(read("type", of.type)),
      key_(read("key", of.key)),
      subject_(read("subject", of.subject)),
      time_(read("time", of.time)) {}

void mapper::fill(message& to, const foreign_parts& from) const {
  reader texts(to, from);
  const auto fill_in = [&](std::string& attribute, const alternatives& by) {
    if (!attribute.empty() || by.empty()) return;
    if (auto text = texts.first_of(by)) attribute = std::move(*text);
  };
  fill_in(to.id, id_);
  fill_in(to.source, source_);
  fill_in(to.type, type_);
  fill_in(to.key, key_);
  fill_in(to.subject, subject_);
  if (to.time != timestamp{} || time_.empty()) return;
  if (const auto text = texts.first_of(time_)) to.time = time_of(*text).value_or(timestamp{});
}

}  // namespace settle::inline v0
