#include "webhook/reading.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>

#include "base/json_members.hpp"
#include "base/text.hpp"
#include "base/time_text.hpp"
#include "settle/error.hpp"
#include "webhook/parse.hpp"

namespace settle::hooks {
namespace {

constexpr std::size_t source_name_bytes_max = 100;
constexpr std::size_t kept_headers_max = 64;
constexpr std::size_t milliseconds_digits = 13;  // from 2001 to 2286
constexpr std::size_t shown_bytes_max = 100;

// The body is read as JSON once, and only if somebody asks for it.
class finder {
 public:
  explicit finder(const request& in) : in_(in) {}

  std::string find(const place& at) {
    if (const auto* named = std::get_if<in_header>(&at)) {
      const auto found = find_header(in_.headers, named->name);
      // Without blanks around it, as it was signed: with one more it would not be another event.
      return found.value && !found.twice ? std::string(trimmed(*found.value)) : std::string();
    }
    if (const auto* member = std::get_if<in_json>(&at)) return text_of(find_member(member->path));
    if (const auto* own = std::get_if<std::function<std::string(const request&)>>(&at)) return (*own)(in_);
    return {};
  }

  // For people: also what is neither text nor a whole number. Empty if there is nothing.
  std::string show(const place& at) {
    const auto* named = std::get_if<in_json>(&at);
    const auto* member = named != nullptr ? find_member(named->path) : nullptr;
    if (member == nullptr || member->is_null() || member->is_string()) return find(at);
    return boost::json::serialize(*member);
  }

  // A member is there twice, and we would take one of them where the sender meant the other. Of what was
  // read.
  bool is_ambiguous() const { return is_ambiguous_; }

 private:
  static std::string text_of(const boost::json::value* member) {
    if (member == nullptr) return {};
    if (const auto* text = member->if_string()) return std::string(*text);
    return member->is_int64() || member->is_uint64() ? boost::json::serialize(*member) : std::string();
  }

  const boost::json::value* find_member(std::string_view path) {
    const auto* at = json();
    while (at != nullptr) {
      const auto end = std::min(path.find('.'), path.size());
      const auto* in = at->if_object();
      at = in != nullptr ? in->if_contains({path.data(), end}) : nullptr;
      if (end == path.size()) break;
      path.remove_prefix(end + 1);
    }
    return at;
  }

  const boost::json::value* json() {
    if (!parsed_) {
      boost::system::error_code failed;
      parsed_ = boost::json::parse({in_.body.data(), in_.body.size()}, failed);
      is_ambiguous_ = !failed && repeats_a_member(in_.body, *parsed_);
      if (failed || is_ambiguous_) parsed_ = boost::json::value();
    }
    return &*parsed_;
  }

  const request& in_;
  std::optional<boost::json::value> parsed_;
  bool is_ambiguous_ = false;
};

bool is_signed_header(const source& of, std::string_view name) {
  return of.signature.how == scheme::standard &&
         (same_name(name, "webhook-id") || same_name(name, "webhook-timestamp"));
}

void check_place(const source& of, const place& at, const char* what) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::invalid_argument, "the webhook source '" + of.name + "': " + what + " " + why);
  };
  if (const auto* named = std::get_if<in_header>(&at)) {
    if (named->name.empty()) refuse("is in a header without a name");
    if (!of.trust_unsigned_headers && !is_signed_header(of, named->name))
      refuse("is in the header '" + named->name +
             "', which is not signed: a copy could come with another one; see trust_unsigned_headers");
  }
  if (const auto* member = std::get_if<in_json>(&at); member != nullptr && member->path.empty())
    refuse("is in a member of the body without a name");
  const auto* own = std::get_if<std::function<std::string(const request&)>>(&at);
  if (own != nullptr && !*own) refuse("has an empty function");
}

std::string name_problem(std::string_view text, const name_rule& rule) {
  try {
    check_name(text, rule);
    return {};
  } catch (const error& e) {
    return e.what();
  }
}

attributes kept_headers(const source& of, const request& from) {
  attributes kept;
  for (const auto& name : of.keep_headers) {
    const auto found = find_header(from.headers, name);
    if (!found.value) continue;
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    kept[lower] = one_line(*found.value, event_limits::header_bytes_max);
  }
  return kept;
}

}  // namespace

void check_source(const source& of) {
  check_name(of.name, {"name of the webhook source", source_name_bytes_max});
  if (std::holds_alternative<std::monostate>(of.event_id))
    throw error(errc::invalid_argument,
                "the webhook source '" + of.name + "' does not say where its event id is found");
  check_place(of, of.event_id, "the event id");
  check_place(of, of.type, "the type");
  check_place(of, of.key, "the key");
  check_place(of, of.time, "the time");
  if (of.keep_headers.size() > kept_headers_max)
    throw error(errc::invalid_argument, "the webhook source '" + of.name + "' keeps more than 64 headers");
  for (const auto& name : of.keep_headers)
    check_name(name, {"name of a kept header", event_limits::name_bytes_max});
}

std::optional<timestamp> provider_time(std::string_view text) {
  if (const auto seconds = unix_seconds(text)) return timestamp(std::chrono::seconds(*seconds));
  if (text.size() == milliseconds_digits)
    if (const auto seconds = unix_seconds(text.substr(0, milliseconds_digits - 3)))
      if (const auto rest = unix_seconds(text.substr(milliseconds_digits - 3)))
        return timestamp(std::chrono::seconds(*seconds) + std::chrono::milliseconds(*rest));
  return from_rfc3339(text);
}

reading read_event(const source& of, const request& from) {
  finder in(from);
  received what;
  what.source = of.name;
  what.id = in.find(of.event_id);
  what.key = in.find(of.key);
  what.type = one_line(in.find(of.type), event_limits::name_bytes_max);
  what.time = provider_time(in.find(of.time));
  if (in.is_ambiguous()) return {std::nullopt, "the body has a JSON member twice in one object"};
  auto problem = name_problem(what.id, {"event id of the webhook", limits::id_bytes_max});
  if (problem.empty())
    problem = name_problem(what.key, {"key of the webhook", event_limits::key_bytes_max, true});
  if (!problem.empty()) return {std::nullopt, problem};
  what.headers = kept_headers(of, from);
  what.body = std::string(from.body);
  reading done{std::move(what), {}};
  if (!done.what->time) done.unread_time = one_line(in.show(of.time), shown_bytes_max);
  return done;
}

}  // namespace settle::hooks

namespace settle::inline v0::webhook {

source stripe(std::string name, std::vector<std::string> secrets) {
  return {.name = std::move(name),
          .signature = {.how = scheme::stripe, .keys = std::move(secrets)},
          .event_id = in_json{"id"},
          .type = in_json{"type"},
          .key = in_json{"data.object.id"},
          .time = in_json{"created"}};
}

source standard(std::string name, std::vector<std::string> keys) {
  return {.name = std::move(name),
          .signature = {.how = scheme::standard, .keys = std::move(keys)},
          .event_id = in_header{"webhook-id"},
          .type = in_json{"type"},
          .key = in_json{"data.id"},
          .time = in_json{"timestamp"}};
}

}  // namespace settle::inline v0::webhook
