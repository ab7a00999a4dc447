#include "postgres/time_texts.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

namespace settle::inline v0::postgres {
namespace {

constexpr std::int64_t second = 1'000'000, minute = 60 * second, hour = 60 * minute;

// Without the zeros at its end, as PostgreSQL has it.
std::string fraction(std::int64_t microseconds) {
  if (microseconds == 0) return {};
  auto digits = fmt::format(".{:06}", microseconds);
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits;
}

std::string clock(std::int64_t microseconds) {
  return fmt::format("{:02}:{:02}:{:02}{}", microseconds / hour, microseconds % hour / minute,
                     microseconds % minute / second, fraction(microseconds % second));
}

// A word with its number, after those before it. Once one is negative, a later positive one has its sign.
void append(std::string& to, bool& negative, std::int64_t number, const char* word) {
  if (number == 0) return;
  to += fmt::format("{}{}{} {}{}", to.empty() ? "" : " ", negative && number > 0 ? "+" : "", number, word,
                    number == 1 ? "" : "s");
  negative = number < 0;
}

}  // namespace

// The civil date of a day, by eras of 400 years that begin in March (H. Hinnant, chrono-compatible dates).
std::string date_text(std::int32_t days) {
  using limits = std::numeric_limits<std::int32_t>;
  if (days == limits::max()) return "infinity";
  if (days == limits::min()) return "-infinity";
  constexpr std::int64_t from_year_0_to_2000 = 730'425, era_days = 146'097;  // from March 1st of year 0
  const auto day = std::int64_t{days} + from_year_0_to_2000;
  const auto era = (day >= 0 ? day : day - era_days + 1) / era_days;
  const auto of_era = day - era * era_days;
  const auto year_of_era = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const auto of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const auto month_from_march = (5 * of_year + 2) / 153;
  const auto month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const auto year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  const auto in_month = of_year - (153 * month_from_march + 2) / 5 + 1;
  return fmt::format("{:04}-{:02}-{:02}{}", year > 0 ? year : 1 - year, month, in_month,
                     year > 0 ? "" : " BC");
}

std::string time_text(std::int64_t microseconds) { return clock(microseconds); }

std::string timetz_text(std::int64_t microseconds, std::int32_t west_seconds) {
  const auto offset = std::abs(std::int64_t{west_seconds});
  auto text = fmt::format("{}{}{:02}", clock(microseconds), west_seconds > 0 ? '-' : '+', offset / 3600);
  if (offset % 3600 != 0) text += fmt::format(":{:02}", offset % 3600 / 60);
  if (offset % 60 != 0) text += fmt::format(":{:02}", offset % 60);
  return text;
}

std::string interval_text(std::int64_t microseconds, std::int32_t days, std::int32_t months) {
  std::string text;
  bool negative = false;
  append(text, negative, months / 12, "year");
  append(text, negative, months % 12, "mon");
  append(text, negative, days, "day");
  if (microseconds == 0 && !text.empty()) return text;
  if (!text.empty()) text += ' ';
  if (microseconds < 0)
    text += '-';
  else if (negative)
    text += '+';
  const auto size = microseconds < 0 ? 0 - static_cast<std::uint64_t>(microseconds)
                                     : static_cast<std::uint64_t>(microseconds);
  const auto hours = size / static_cast<std::uint64_t>(hour);
  const auto rest = clock(static_cast<std::int64_t>(size % static_cast<std::uint64_t>(hour)));
  return text + fmt::format("{:02}", hours) + rest.substr(2);
}

}  // namespace settle::inline v0::postgres
