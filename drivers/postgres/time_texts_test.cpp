#include "postgres/time_texts.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace settle::postgres {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3'600 * second;

TEST(time_texts, dates_are_written_as_postgres_writes_them) {
  EXPECT_EQ(date_text(0), "2000-01-01");
  EXPECT_EQ(date_text(-1), "1999-12-31");
  EXPECT_EQ(date_text(59), "2000-02-29");
  EXPECT_EQ(date_text(-10'957), "1970-01-01");
  EXPECT_EQ(date_text(-730'119), "0001-01-01");
  EXPECT_EQ(date_text(-730'120), "0001-12-31 BC");
  EXPECT_EQ(date_text(2'145'031'948), "5874897-12-31");
  EXPECT_EQ(date_text(std::numeric_limits<std::int32_t>::max()), "infinity");
  EXPECT_EQ(date_text(std::numeric_limits<std::int32_t>::min()), "-infinity");
}

TEST(time_texts, times_of_the_day_are_written_as_postgres_writes_them) {
  EXPECT_EQ(time_text(0), "00:00:00");
  EXPECT_EQ(time_text(13 * hour + 5 * second + 120'000), "13:00:05.12");
  EXPECT_EQ(time_text(24 * hour), "24:00:00");
  EXPECT_EQ(timetz_text(12 * hour, -2 * 3'600), "12:00:00+02");
  EXPECT_EQ(timetz_text(12 * hour, 3 * 3'600 + 30 * 60), "12:00:00-03:30");
  EXPECT_EQ(timetz_text(12 * hour, -1), "12:00:00+00:00:01");
}

TEST(time_texts, intervals_are_written_as_postgres_writes_them) {
  EXPECT_EQ(interval_text(0, 0, 0), "00:00:00");
  EXPECT_EQ(interval_text(4 * hour + 5 * second, 3, 14), "1 year 2 mons 3 days 04:00:05");
  EXPECT_EQ(interval_text(0, 1, 0), "1 day");
  EXPECT_EQ(interval_text(-90 * second, 0, 0), "-00:01:30");
  EXPECT_EQ(interval_text(hour, -2, 0), "-2 days +01:00:00");
  EXPECT_EQ(interval_text(0, 3, -1), "-1 mons +3 days");
  EXPECT_EQ(interval_text(100 * hour, 0, 0), "100:00:00");
  EXPECT_EQ(interval_text(std::numeric_limits<std::int64_t>::min(), 0, 0), "-2562047788:00:54.775808");
}

}  // namespace
}  // namespace settle::postgres
