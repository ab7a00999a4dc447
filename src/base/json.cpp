#include "base/json.hpp"

#include <boost/json.hpp>
#include <utility>

#include "settle/error.hpp"

namespace settle::inline v0 {

namespace {

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; }

// To the end whatever comes: without a way out compilers look at many characters at once.
bool all_plain(std::string_view text) {
  bool plain = true;
  for (const char c : text) plain &= is_plain(c);
  return plain;
}

void append_string(std::string& out, std::string_view text) {
  if (all_plain(text)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += boost::json::serialize(boost::json::string_view(text.data(), text.size()));
  }
}

// What to_json writes for plain values, read in one pass. False: it needs a real parser.
bool read_plain(std::string_view text, attributes& out) {
  std::size_t at = 0;
  const auto skip = [&](char c) { return at < text.size() && text[at] == c ? (++at, true) : false; };
  const auto plain = [&](std::string_view& into) {
    if (!skip('"')) return false;
    const auto begin = at;
    while (at < text.size() && is_plain(text[at])) ++at;
    into = text.substr(begin, at - begin);
    return skip('"');
  };
  if (!skip('{')) return false;
  do {
    std::string_view name, content;
    if (!plain(name) || !skip(':') || !plain(content)) return false;
    out.insert_or_assign(out.end(), std::string(name), std::string(content));
  } while (skip(','));
  return skip('}') && at == text.size();
}

}  // namespace

std::string to_json(const attributes& values) {
  if (values.empty()) return {};
  std::string out;
  for (const auto& [name, value] : values) {
    out += out.empty() ? '{' : ',';
    append_string(out, name);
    out += ':';
    append_string(out, value);
  }
  out += '}';
  return out;
}

attributes attributes_from_json(std::string_view text) {
  attributes out;
  if (text.empty() || read_plain(text, out)) return out;
  out.clear();
  // Whoever stored it has checked the encoding; refusing here would block everything behind it.
  boost::json::parse_options lenient;
  lenient.allow_invalid_utf8 = true;
  boost::system::error_code failed;
  const auto parsed = boost::json::parse({text.data(), text.size()}, failed, {}, lenient);
  if (failed || !parsed.is_object())
    throw error(errc::decode_failed, "stored attributes are not a JSON object");
  for (const auto& [name, value] : parsed.get_object()) {
    // Rows that other programs wrote may hold numbers and the like: an attribute is their text.
    out.emplace(std::string(name),
                value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value));
  }
  return out;
}

json_array& json_array::add(std::string_view text) {
  append_string(next(), text);
  return *this;
}

json_array& json_array::add(std::int64_t number) {
  next() += std::to_string(number);
  return *this;
}

json_array& json_array::add(const json_array& nested) {
  auto& out = next();
  out += '[';
  out += nested.content_;
  out += ']';
  return *this;
}

json_array& json_array::add_all(std::initializer_list<std::string_view> texts) {
  auto& out = next();
  char before = '[';
  for (const auto text : texts) {
    out += std::exchange(before, ',');
    append_string(out, text);
  }
  out += ']';
  return *this;
}

std::string& json_array::next() {
  if (!content_.empty()) content_ += ',';
  return content_;
}

}  // namespace settle
