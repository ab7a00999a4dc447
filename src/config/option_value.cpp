// Values as people write them: 10s, 4MiB, 500, 127.0.0.1:8600.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"
#include "compose/redis.hpp"
#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "config/address.hpp"
#include "config/option.hpp"
#include "settle/error.hpp"

namespace settle::config {
namespace {

struct unit {
  std::string_view name;
  std::int64_t size;
};

// Largest first: that is how a value is shown.
constexpr std::array time_units{unit{"d", 86'400'000'000}, unit{"h", 3'600'000'000}, unit{"m", 60'000'000},
                                unit{"s", 1'000'000},      unit{"ms", 1'000},        unit{"us", 1}};
constexpr std::array byte_units{unit{"GiB", 1 << 30}, unit{"MiB", 1 << 20}, unit{"KiB", 1 << 10},
                                unit{"B", 1}};
constexpr std::array levels{log_level::debug, log_level::info, log_level::warning, log_level::error};

std::string grouped(std::int64_t number) {
  auto out = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > 0; at -= 3)
    out.insert(static_cast<std::size_t>(at), 1, ',');
  return out;
}

std::string with_unit(std::int64_t value, std::span<const unit> units) {
  for (const auto& one : units)
    if (value != 0 && value % one.size == 0) return fmt::format("{}{}", value / one.size, one.name);
  return fmt::format("0{}", units.front().name == "d" ? "s" : "B");
}

std::string number_text(std::int64_t value, kind type) {
  if (type == kind::time) return with_unit(value, time_units);
  if (type == kind::bytes) return with_unit(value, byte_units);
  return grouped(value);
}

std::span<const unit> units_of(kind type) {
  if (type == kind::time) return time_units;
  if (type == kind::bytes) return byte_units;
  return {};
}

// A whole number, then a unit. Bytes and counts may stand without one; a time may not, because
// nobody agrees on which one it would be.
std::optional<std::int64_t> parse_number(kind type, std::string_view text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || number < 0) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  if (suffix.empty()) return type == kind::time ? std::nullopt : std::optional(number);
  for (const auto& one : units_of(type)) {
    if (one.name != suffix) continue;
    std::int64_t product = 0;
    return __builtin_mul_overflow(number, one.size, &product) ? std::nullopt : std::optional(product);
  }
  return std::nullopt;
}

std::string example_of(kind type) {
  switch (type) {
    case kind::time:
      return "a whole number and a unit (us, ms, s, m, h, d), such as 500ms or 10s";
    case kind::bytes:
      return "a whole number of bytes, or one with a unit (B, KiB, MiB, GiB), such as 4MiB";
    default:
      return "a whole number";
  }
}

// Never quoted: there may be a password in it.
bool is_store(std::string_view text) try {
  if (!text.empty()) compose::check_database(std::string(text));
  return true;
} catch (const error&) {
  return false;
}

bool is_broker(std::string_view text) try {
  compose::check_broker(std::string(text));
  return true;
} catch (const error&) {
  return false;
}

bool is_redis(std::string_view text) try {
  if (!text.empty()) compose::redis_without_secrets(std::string(text));
  return true;
} catch (const error&) {
  return false;
}

// Why this build cannot use what a setting names; empty: it can.
std::string without_driver(kind type, std::string_view text) {
  if (type == kind::store) return compose::missing_driver(text);
  if (type == kind::broker) return compose::missing_broker_driver(text);
  return type == kind::redis && !text.empty() ? compose::missing_redis() : std::string();
}

// Without what nobody should see.
std::string shown_text(kind type, const std::string& text) {
  if (type == kind::store) return compose::without_secrets(text);
  if (type == kind::broker) return compose::broker_without_secrets(text);
  if (type == kind::redis && !text.empty()) return compose::redis_without_secrets(text);
  return text;
}

bool is_quoted(kind type) { return type != kind::count && type != kind::flag; }

// "stripe, standard or hmac"
std::string listed(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return out;
}

template <class Settings>
std::string got(const option_of<Settings>& what, std::string_view text) {
  return what.secret ? "" : fmt::format(", got '{}'", text);
}

template <class Settings>
std::string refusal(const option_of<Settings>& what, std::string_view text) {
  return fmt::format("must be {}{}", allowed_text(what), got(what, text));
}

// What is not quoted in the refusal may be a secret at the wrong place.
template <class Settings>
std::optional<std::string> check_text(const option_of<Settings>& what, std::string_view text) {
  if (what.type == kind::address && !parse_address(text)) return refusal(what, text);
  if (what.type == kind::choice && std::ranges::find(what.words, text) == what.words.end())
    return refusal(what, text);
  if (what.type == kind::address || what.type == kind::choice) return std::nullopt;
  if (const auto why = without_driver(what.type, text); !why.empty())
    return fmt::format("cannot be used: {}", why);
  const auto refused = fmt::format("must be {}", allowed_text(what));
  if (what.type == kind::store && !is_store(text)) return refused;
  if (what.type == kind::broker && !is_broker(text)) return refused;
  if (what.type == kind::redis && !is_redis(text)) return refused;
  if (what.type == kind::place && !text.empty() && !read_place(text)) return refused;
  try {
    check_name(text, {what.name, static_cast<std::size_t>(what.allowed.max), what.allowed.min == 0});
  } catch (const error&) {
    return refused;
  }
  return std::nullopt;
}

std::optional<log_level> parse_level(std::string_view text) {
  const auto found = std::ranges::find(levels, text, [](log_level one) { return to_string(one); });
  return found == levels.end() ? std::nullopt : std::optional(*found);
}

std::optional<bool> parse_flag(std::string_view text) {
  if (text != "true" && text != "false") return std::nullopt;
  return text == "true";
}

bool is_number(kind type) { return type == kind::count || type == kind::bytes || type == kind::time; }

}  // namespace

template <class Settings>
std::optional<std::string> assign(Settings& to, const option_of<Settings>& what, std::string_view text) {
  const auto take = [&](const auto& read) -> std::optional<std::string> {
    if (!read) return refusal(what, text);
    what.where.write(to, *read);
    return std::nullopt;
  };
  if (what.type == kind::level) return take(parse_level(text));
  if (what.type == kind::flag) return take(parse_flag(text));
  if (!is_number(what.type)) {
    if (auto refused = check_text(what, text)) return refused;
    return take(std::optional(std::string(text)));
  }
  const auto number = parse_number(what.type, text);
  if (!number) return fmt::format("must be {}{}", example_of(what.type), got(what, text));
  if (*number < what.allowed.min || *number > what.allowed.max) return refusal(what, text);
  return what.type == kind::time ? take(std::optional(duration(*number))) : take(number);
}

template <class Settings>
std::optional<std::string> assign_written(Settings& to, const option_of<Settings>& what,
                                          std::string_view text, bool quoted) {
  if (what.type == kind::bytes || is_quoted(what.type) == quoted) return assign(to, what, text);
  return fmt::format("is written {} quotes", is_quoted(what.type) ? "in" : "without");
}

template <class Settings>
std::string shown(const Settings& from, const option_of<Settings>& what) {
  const auto value = what.where.read(from);
  const auto* text = std::get_if<std::string>(&value);
  if (what.secret) return text != nullptr && text->empty() ? "" : "(hidden)";  // nothing is no secret
  if (text != nullptr) return shown_text(what.type, *text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* level = std::get_if<log_level>(&value)) return std::string(to_string(*level));
  if (const auto* time = std::get_if<duration>(&value)) return with_unit(time->count(), time_units);
  const auto number = std::get<std::int64_t>(value);
  return what.type == kind::bytes ? with_unit(number, byte_units) : std::to_string(number);
}

template <class Settings>
std::string written(const Settings& from, const option_of<Settings>& what) {
  const auto text = shown(from, what);
  if (!is_quoted(what.type)) return text;
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("\"{}\"", escaped);
}

template <class Settings>
std::string allowed_text(const option_of<Settings>& of) {
  switch (of.type) {
    case kind::level:
      return "debug, info, warning or error";
    case kind::flag:
      return "true or false";
    case kind::store:
      return fmt::format("a file, postgresql://… or 'host=… dbname=… user=…', at most {} bytes",
                         grouped(of.allowed.max));
    case kind::broker:
      return fmt::format("a file, amqp://…, amqps://…, kafka://… or kafkas://…, at most {} bytes",
                         grouped(of.allowed.max));
    case kind::redis:
      return fmt::format("redis://[[USER]:PASSWORD@]HOST[:PORT][/NUMBER], at most {} bytes",
                         grouped(of.allowed.max));
    case kind::address:
      return "ADDRESS:PORT, such as 127.0.0.1:8600, [::1]:8600 or localhost:8600";
    case kind::text:
      return fmt::format("text of {} to {} bytes without control characters", of.allowed.min,
                         grouped(of.allowed.max));
    case kind::choice:
      return listed(of.words);
    case kind::place:
      return "json:MEMBER or header:NAME, such as json:data.object.id";
    default:
      break;
  }
  return fmt::format("{} to {}{}{}", number_text(of.allowed.min, of.type),
                     number_text(of.allowed.max, of.type), of.unit.empty() ? "" : " ", of.unit);
}

#define SETTLE_OPTIONS_OF(settings)                                                                    \
  template std::optional<std::string> assign(settings&, const option_of<settings>&, std::string_view); \
  template std::optional<std::string> assign_written(settings&, const option_of<settings>&,            \
                                                     std::string_view, bool);                          \
  template std::string shown(const settings&, const option_of<settings>&);                             \
  template std::string written(const settings&, const option_of<settings>&);                           \
  template std::string allowed_text(const option_of<settings>&)

SETTLE_OPTIONS_OF(configuration);
SETTLE_OPTIONS_OF(service_settings);
SETTLE_OPTIONS_OF(broker_settings);
SETTLE_OPTIONS_OF(rabbitmq::existing_exchange);
SETTLE_OPTIONS_OF(topic_route);
SETTLE_OPTIONS_OF(webhook_settings);

}  // namespace settle::config
