#include <gtest/gtest.h>

#include "http/shared.hpp"
#include "settle/testing.hpp"

namespace settle::http {
namespace {

using std::chrono::seconds;

timestamp at(std::int64_t s) { return timestamp(seconds(s)); }

TEST(http_date, is_written_as_the_example_of_its_specification) {
  EXPECT_EQ(to_date(at(784111777)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(to_date(at(784111777) + duration(999'999)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(to_date(at(-1)), "Wed, 31 Dec 1969 23:59:59 GMT");
}

TEST(http_date, that_was_written_is_read_again) {
  testing::seeded_random random(3);
  for (int i = 0; i < 5000; ++i) {
    const auto when = at(static_cast<std::int64_t>(random.below(253'402'300'800)));  // up to the year 9999
    EXPECT_EQ(from_date(to_date(when)), when) << to_date(when);
  }
}

TEST(http_date, of_any_other_form_is_none) {
  for (const auto* text :
       {"", "Sun, 06 Nov 1994 08:49:37 UTC", "Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:60 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:4 :37 GMT", "Sun,  6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Tue, 30 Feb 2027 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:-7 GMT", "Sun, 00 Nov 1994 08:49:37 GMT"})
    EXPECT_EQ(from_date(text), std::nullopt) << text;
}

}  // namespace
}  // namespace settle::http
