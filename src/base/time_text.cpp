#include "base/time_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace settle::inline v0 {
namespace {

// Reads `digits` decimal digits at `at`, followed by `after` (0: nothing to follow).
bool read(std::string_view text, std::size_t& at, std::size_t digits, char after, int& out) {
  if (at + digits > text.size()) return false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::ranges::all_of(text.substr(at, digits), is_digit)) return false;  // from_chars takes a sign
  const auto* begin = text.data() + at;
  const auto [end, code] = std::from_chars(begin, begin + digits, out);
  if (code != std::errc{} || end != begin + digits) return false;
  at += digits;
  if (after == 0) return true;
  return at < text.size() && text[at++] == after;
}

// "Z", or how far the clock on the wall is ahead of UTC: "+02:00".
std::optional<std::chrono::minutes> read_offset(std::string_view text) {
  using std::chrono::minutes;
  if (text == "Z") return minutes(0);
  int hours = 0, rest = 0;
  std::size_t at = 1;
  if (text.size() != 6 || !read(text, at, 2, ':', hours) || !read(text, at, 2, 0, rest)) return std::nullopt;
  if ((text[0] != '+' && text[0] != '-') || hours > 23 || rest > 59) return std::nullopt;
  return minutes((text[0] == '-' ? -1 : 1) * (hours * 60 + rest));
}

}  // namespace

std::string to_rfc3339(timestamp at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

std::optional<timestamp> from_rfc3339(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  std::size_t at = 0;
  if (!read(text, at, 4, '-', year) || !read(text, at, 2, '-', month) || !read(text, at, 2, 'T', day) ||
      !read(text, at, 2, ':', hour) || !read(text, at, 2, ':', minute) || !read(text, at, 2, 0, second))
    return std::nullopt;
  std::int64_t micros = 0;
  if (at < text.size() && text[at] == '.') {
    std::int64_t unit = 100'000;
    const auto point = at;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      micros += (text[at] - '0') * unit;
    if (at == point + 1) return std::nullopt;
  }
  const auto offset = read_offset(text.substr(at));
  if (!offset) return std::nullopt;
  using namespace std::chrono;
  const year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const timestamp read(sys_days(date).time_since_epoch() + hours(hour) + minutes(minute) + seconds(second) +
                       microseconds(micros) - *offset);
  // Its offset may carry it out of the years that can be written.
  const auto written = static_cast<int>(year_month_day(floor<days>(read)).year());
  if (written < 0 || written > 9999) return std::nullopt;
  return read;
}

}  // namespace settle
