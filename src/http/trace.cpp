#include <algorithm>

#include "http/characters.hpp"
#include "settle/database.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {
namespace {

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

// version "-" trace-id "-" parent-id "-" flags. A later version may append more.
bool is_traceparent(std::string_view text) {
  constexpr std::size_t bytes = 55;
  if (text.size() < bytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const auto version = text.substr(0, 2), trace = text.substr(3, 32), parent = text.substr(36, 16);
  if (!is_hex(version) || version == "ff") return false;
  if (text.size() > bytes && (version == "00" || text[bytes] != '-')) return false;
  return is_hex(trace) && is_hex(parent) && is_hex(text.substr(53, 2)) && !is_zero(trace) && !is_zero(parent);
}

bool is_tracestate_key(std::string_view key) {
  return !key.empty() && key.size() <= 256 && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("_-*/@").find(c) != std::string_view::npos;
  });
}

bool is_tracestate_value(std::string_view value) {
  return !value.empty() && value.size() <= 256 &&
         std::ranges::all_of(value, [](char c) { return c >= 0x20 && c <= 0x7e && c != ',' && c != '='; });
}

constexpr std::size_t tracestate_members_max = 32;
constexpr std::size_t tracestate_bytes_max = 512;  // what everybody has to be able to pass on

std::string joined(const std::vector<std::string_view>& lines) {
  std::string out;
  for (const auto one : lines) out.append(out.empty() ? "" : ",").append(one);
  return out;
}

bool is_tracestate(std::string_view text) {
  std::size_t members = 0;
  bool valid = text.size() <= tracestate_bytes_max;
  for_each_element(text, [&](std::string_view member) {
    const auto equals = member.find('=');
    valid = valid && ++members <= tracestate_members_max && equals != std::string_view::npos &&
            is_tracestate_key(member.substr(0, equals)) && is_tracestate_value(member.substr(equals + 1));
  });
  return valid && members > 0;
}

}  // namespace

trace_context read_trace(const header_list& headers) {
  const auto parent = headers.find("traceparent");
  if (!parent || !is_traceparent(*parent) || headers.count("traceparent") != 1) return {};
  auto state = joined(headers.all("tracestate"));
  if (!is_tracestate(state)) state.clear();
  return {std::string(*parent), std::move(state)};
}

origin cause_of(const request& asked) {
  origin cause;
  cause.traceparent = asked.trace.traceparent;
  cause.tracestate = asked.trace.tracestate;
  return cause;
}

}  // namespace settle::inline v0::http
