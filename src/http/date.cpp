#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "http/shared.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::array<std::string_view, 7> weekdays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::size_t date_bytes = std::string_view("Sun, 06 Nov 1994 08:49:37 GMT").size();

// Far beyond every deadline, and far from overflow.
constexpr std::int64_t retry_after_seconds_max = 1'000'000'000;

// 0 where there is no number; the comparison with the whole text finds that.
int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string to_date(timestamp at) {
  using namespace std::chrono;
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss time(floor<seconds>(at - day));
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", weekdays[weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), time.hours().count(), time.minutes().count(),
                     time.seconds().count());
}

std::optional<timestamp> from_date(std::string_view text) {
  using namespace std::chrono;
  if (text.size() != date_bytes) return std::nullopt;
  const auto month_at = std::ranges::find(months, text.substr(8, 3)) - months.begin();
  const year_month_day date(year(number(text.substr(12, 4))), month(static_cast<unsigned>(month_at) + 1),
                            day(static_cast<unsigned>(number(text.substr(5, 2)))));
  if (!date.ok()) return std::nullopt;
  const timestamp at = sys_days(date) + hours(number(text.substr(17, 2))) +
                       minutes(number(text.substr(20, 2))) + seconds(number(text.substr(23, 2)));
  // Written again it must be the same: that checks names, signs, ranges and the day of the week at once.
  return to_date(at) == text ? std::optional(at) : std::nullopt;
}

std::optional<duration> read_retry_after(std::string_view value, std::string_view date, timestamp now) {
  if (value.empty()) return std::nullopt;
  if (std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; })) {
    std::int64_t seconds = 0;
    for (const char c : value) seconds = std::min(retry_after_seconds_max, seconds * 10 + (c - '0'));
    return std::chrono::seconds(seconds);
  }
  const auto at = from_date(value);
  if (!at) return std::nullopt;
  return *at - from_date(date).value_or(now);
}

}  // namespace settle::inline v0::http
