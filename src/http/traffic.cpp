#include "http/traffic.hpp"

#include <algorithm>
#include <array>

#include "settle/metrics.hpp"

namespace settle::inline v0::http {
namespace {

// Whatever else a client may invent is counted as one.
constexpr std::array<std::string_view, 8> methods{"other", "GET",   "HEAD",   "POST",
                                                  "PUT",   "PATCH", "DELETE", "OPTIONS"};
constexpr std::array<std::string_view, 6> classes{"other", "1xx", "2xx", "3xx", "4xx", "5xx"};

std::uint64_t number_of(std::string_view method) {
  const auto* const found = std::ranges::find(methods, method);
  return found == methods.end() ? 0 : static_cast<std::uint64_t>(found - methods.begin());
}

}  // namespace

void traffic::request(std::size_t path, std::string_view pattern, std::string_view method, int status,
                      duration took) {
  if (path >= patterns_.size()) patterns_.resize(path + 1);
  if (patterns_[path].empty()) patterns_[path] = pattern;
  const auto status_class = static_cast<std::uint64_t>(std::clamp(status / 100, 0, 5));
  requests_[path << 16 | number_of(method) << 8 | status_class].add(std::max(took, duration::zero()));
}

void traffic::refused_request(std::string_view reason) { ++reasons_[reason]; }

// What has been added is forgotten at once: the rest may have to wait for memory.
void traffic::flush() {
  while (!requests_.empty()) {
    const auto [key, times] = *requests_.begin();
    const std::string_view route = patterns_[key >> 16], method = methods[key >> 8 & 0xff],
                           status = classes[key & 0xff];
    env_.counters->add("settle_http_requests_total",
                       {{"route", route}, {"method", method}, {"status", status}}, times.count());
    requests_.erase(requests_.begin());
    env_.counters->add_times("settle_http_request_seconds",
                             {{"route", route}, {"method", method}, {"status", status}}, times);
  }
  while (!reasons_.empty()) {
    env_.counters->add("settle_http_refused_requests_total", {{"reason", reasons_.begin()->first}},
                       reasons_.begin()->second);
    reasons_.erase(reasons_.begin());
  }
  const auto add = [&](std::string_view name, std::int64_t& count) {
    env_.counters->add(name, {}, count);
    count = 0;
  };
  add("settle_http_connections_total", opened_);
  add("settle_http_closed_connections_total", closed_);
  add("settle_http_refused_connections_total", refused_);
}

}  // namespace settle::inline v0::http
