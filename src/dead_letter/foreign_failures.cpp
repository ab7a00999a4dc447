#include "dead_letter/foreign_failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <string_view>

#include "base/time_text.hpp"

namespace settle::inline v0::dlq {
namespace {

namespace json = boost::json;

// Headers arrive as extensions, so their names have lower-case letters and digits only.
struct header_names {
  std::string_view place, kind, text, time;
};
constexpr std::array<header_names, 4> known{{
    {"mtfaultinputaddress", "mtfaultexceptiontype", "mtfaultmessage", "mtfaulttimestamp"},
    {"nservicebusfailedq", "nservicebusexceptioninfoexceptiontype", "nservicebusexceptioninfomessage",
     "nservicebustimeoffailure"},
    {"topicpoisoned", "", "reasonpoisoned", ""},
    {"connecterrorstopic", "connecterrorsexceptionclassname", "connecterrorsexceptionmessage", ""},
}};

std::string_view value_of(const message& of, std::string_view name) {
  const auto found = name.empty() ? of.extensions.end() : of.extensions.find(std::string(name));
  return found == of.extensions.end() ? std::string_view() : std::string_view(found->second);
}

std::string text_of(const json::object& of, std::string_view name) {
  const auto* found = of.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::int64_t number_of(const json::object& of, std::string_view name, std::int64_t otherwise) {
  const auto* found = of.if_contains(name);
  return found != nullptr && found->is_int64() ? found->get_int64() : otherwise;
}

std::string routing_keys_of(const json::object& of) {
  const auto* found = of.if_contains("routing-keys");
  std::string all;
  if (found == nullptr || !found->is_array()) return all;
  for (const auto& one : found->get_array())
    if (one.is_string()) all += (all.empty() ? "" : ", ") + std::string(one.get_string());
  return all;
}

std::string why(std::string_view reason) {
  if (reason == "rejected") return "was rejected by its reader";
  if (reason == "expired") return "waited for too long";
  if (reason == "maxlen") return "had to go because the queue was full";
  if (reason == "delivery_limit") return "was delivered too often";
  return fmt::format("died ({})", reason);
}

// One entry for each queue and reason, the newest first.
void add_deaths(foreign_failures& to, std::string_view text) {
  boost::system::error_code failed;
  const auto parsed = json::parse({text.data(), text.size()}, failed);
  if (failed || !parsed.is_array()) return;
  for (const auto& one : parsed.get_array()) {
    if (!one.is_object()) continue;
    const auto& death = one.get_object();
    const auto times = std::max<std::int64_t>(number_of(death, "count", 1), 1);
    to.history.push_back(
        {timestamp(std::chrono::seconds(number_of(death, "time", 0))), failure_class::poison,
         fmt::format("in queue {} it {}{} (exchange {}, routing key {})", text_of(death, "queue"),
                     why(text_of(death, "reason")), times == 1 ? "" : fmt::format(", {} times", times),
                     text_of(death, "exchange"), routing_keys_of(death))});
    to.attempts += times;
  }
  std::ranges::reverse(to.history);
}

}  // namespace

foreign_failures read_foreign_failures(const message& of) {
  foreign_failures found;
  add_deaths(found, value_of(of, "xdeath"));
  for (const auto& names : known) {
    const auto text = value_of(of, names.text);
    if (text.empty()) continue;
    const auto kind = value_of(of, names.kind);
    const auto place = value_of(of, names.place);
    found.history.push_back({from_rfc3339(value_of(of, names.time)).value_or(timestamp{}),
                             failure_class::poison,
                             fmt::format("{}{}{}{}", kind, kind.empty() ? "" : ": ", text,
                                         place.empty() ? "" : fmt::format(" (in {})", place))});
    ++found.attempts;
  }
  return found;
}

}  // namespace settle::inline v0::dlq
