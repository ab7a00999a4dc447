#include "base/json.hpp"

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cstring>
#include <utility>

#include "settle/error.hpp"

namespace settle::inline v0 {

namespace {

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; }

constexpr std::uint64_t each_byte(unsigned char c) { return 0x0101010101010101U * c; }

// Not zero if one of the eight bytes is less than the limit, which must be 1 to 128.
constexpr std::uint64_t any_below(std::uint64_t bytes, unsigned char limit) {
  return (bytes - each_byte(limit)) & ~bytes & each_byte(0x80);
}

// Keys of whole batches pass here, so eight characters at a time.
bool all_plain(std::string_view text) {
  std::uint64_t special = 0;
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), sizeof bytes);
    special |=
        any_below(bytes, 0x20) | any_below(bytes ^ each_byte('"'), 1) | any_below(bytes ^ each_byte('\\'), 1);
  }
  bool plain = special == 0;
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

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 20> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
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
  append_number(next(), number);
  return *this;
}

json_array& json_array::add_pair(std::int64_t number, std::string_view text) {
  auto& out = next();
  out += '[';
  append_number(out, number);
  out += ',';
  append_string(out, text);
  out += ']';
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
