#include "base/text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/time_text.hpp"
#include "support/expect_error.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::code_of;

TEST(utf8, accepts_every_length_at_its_bounds) {
  for (const auto& text :
       {""s, "plain"s, "\x7f"s, "\0"s, "\xc2\x80"s, "\xdf\xbf"s, "\xe0\xa0\x80"s, "\xed\x9f\xbf"s,
        "\xee\x80\x80"s, "\xef\xbf\xbf"s, "\xf0\x90\x80\x80"s, "\xf4\x8f\xbf\xbf"s, "a\xc3\xbc\x62"s})
    EXPECT_TRUE(is_utf8(text)) << ::testing::PrintToString(text);
}

TEST(utf8, refuses_overlong_forms) {
  for (const auto& text : {"\xc0\x80"s, "\xc0\xaf"s, "\xc1\xbf"s, "\xe0\x80\x80"s, "\xe0\x9f\xbf"s,
                           "\xf0\x80\x80\x80"s, "\xf0\x8f\xbf\xbf"s})
    EXPECT_FALSE(is_utf8(text)) << ::testing::PrintToString(text);
}

TEST(utf8, refuses_surrogates) {
  for (const auto& text : {"\xed\xa0\x80"s, "\xed\xaf\xbf"s, "\xed\xb0\x80"s, "\xed\xbf\xbf"s})
    EXPECT_FALSE(is_utf8(text)) << ::testing::PrintToString(text);
}

TEST(utf8, refuses_what_is_beyond_unicode) {
  for (const auto& text :
       {"\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s, "\xf8\x88\x80\x80\x80"s, "\xfe"s, "\xff"s})
    EXPECT_FALSE(is_utf8(text)) << ::testing::PrintToString(text);
}

TEST(utf8, refuses_sequences_that_are_cut_off_or_begin_in_the_middle) {
  for (const auto& text : {"\xc3"s, "\xe6\x9d"s, "\xf0\x9f\x9a"s, "\x80"s, "\xbf"s, "\xc3("s, "\xe6\x9d("s,
                           "\xf0\x9f\x9a("s, "ok\xc3"s, "\xc3\xc3"s})
    EXPECT_FALSE(is_utf8(text)) << ::testing::PrintToString(text);
}

constexpr name_rule rule{"topic", 8};

TEST(check_name, accepts_text_up_to_its_length_in_bytes) {
  EXPECT_NO_THROW(check_name("orders", rule));
  EXPECT_NO_THROW(check_name("12345678", rule));
  EXPECT_NO_THROW(check_name("a b~", rule));
  EXPECT_NO_THROW(check_name("東京", rule));
}

TEST(check_name, refuses_what_is_too_long_by_one_byte) {
  EXPECT_EQ(code_of([] { check_name("123456789", rule); }), errc::invalid_name);
  EXPECT_EQ(code_of([] { check_name("東京京", rule); }), errc::invalid_name);
}

TEST(check_name, refuses_an_empty_one_unless_the_rule_allows_it) {
  EXPECT_EQ(code_of([] { check_name("", rule); }), errc::invalid_name);
  EXPECT_NO_THROW(check_name("", {"key", 8, true}));
}

TEST(check_name, refuses_control_characters_wherever_they_stand) {
  for (const auto& text : {"\0"s, "a\0b"s, "a\n"s, "\ta"s, "a\x1f"s, "a\x7f"s})
    EXPECT_EQ(code_of([&] { check_name(text, rule); }), errc::invalid_name) << ::testing::PrintToString(text);
}

TEST(check_name, refuses_what_is_not_utf8) {
  EXPECT_EQ(code_of([] { check_name("a\xff", rule); }), errc::invalid_name);
}

TEST(check_name, says_what_is_wrong_with_what) {
  try {
    check_name("ab\ncd", rule);
    FAIL() << "accepted";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("the topic has the control character 0x0a at byte 2"),
              std::string::npos)
        << e.what();
  }
}

timestamp at(std::int64_t us) { return timestamp(duration(us)); }

TEST(time_text, is_rfc_3339_in_utc_with_microseconds) {
  EXPECT_EQ(to_rfc3339(at(0)), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(to_rfc3339(at(1'700'000'000'123'456)), "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(to_rfc3339(at(-1)), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(to_rfc3339(at(1'709'164'800'000'000)), "2024-02-29T00:00:00.000000Z");
}

TEST(time_text, reads_what_it_writes) {
  for (const std::int64_t us : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1'700'000'000'123'456},
                                std::int64_t{253'402'300'799'999'999}, std::int64_t{-62'135'596'800'000'000}})
    EXPECT_EQ(from_rfc3339(to_rfc3339(at(us))), at(us));
}

TEST(time_text, reads_any_number_of_fraction_digits) {
  EXPECT_EQ(from_rfc3339("1970-01-01T00:00:01Z"), at(1'000'000));
  EXPECT_EQ(from_rfc3339("1970-01-01T00:00:01.5Z"), at(1'500'000));
  EXPECT_EQ(from_rfc3339("1970-01-01T00:00:01.123456789Z"), at(1'123'456));
}

TEST(time_text, refuses_what_an_offset_carries_out_of_the_years_that_it_writes) {
  EXPECT_EQ(from_rfc3339("0000-01-01T00:00:00+23:59"), std::nullopt);
  EXPECT_EQ(from_rfc3339("9999-12-31T23:59:59-00:01"), std::nullopt);
  EXPECT_EQ(from_rfc3339("9999-12-31T23:59:60Z"), std::nullopt);
  EXPECT_TRUE(from_rfc3339("0000-01-01T00:00:00Z"));
}

TEST(time_text, reads_offsets_from_utc) {
  EXPECT_EQ(from_rfc3339("1970-01-01T02:00:01+02:00"), at(1'000'000));
  EXPECT_EQ(from_rfc3339("1969-12-31T18:30:01.5-05:30"), at(1'500'000));
  EXPECT_EQ(from_rfc3339("1970-01-01T00:00:01+00:00"), at(1'000'000));
  EXPECT_EQ(from_rfc3339("1970-01-01T00:00:01-00:00"), at(1'000'000));
}

TEST(time_text, refuses_what_is_no_time) {
  for (const auto* text : {"",
                           "Z",
                           "1970-01-01",
                           "1970-01-01T00:00:00",
                           "1970-01-01 00:00:00Z",
                           "1970-13-01T00:00:00Z",
                           "1970-00-01T00:00:00Z",
                           "1970-02-29T00:00:00Z",
                           "1970-01-32T00:00:00Z",
                           "1970-01-01T24:00:00Z",
                           "1970-01-01T00:60:00Z",
                           "1970-01-01T00:00:61Z",
                           "1970-01-01T00:00:00Zx",
                           "1970-01-01T00:00:00+1:00",
                           "1970-01-01T00:00:00+24:00",
                           "1970-01-01T00:00:00+01:60",
                           "1970-01-01T00:00:00+0100",
                           "1970-01-01T00:00:00 01:00",
                           "1970-01-01T00:00:00+01:00x",
                           "1970-01-01T00:00:00+",
                           "1970-01-01T00:00:00+-1:00",
                           "1970-1-01T00:00:00Z",
                           "x970-01-01T00:00:00Z",
                           "1970-01-01T00:00:00.x"})
    EXPECT_EQ(from_rfc3339(text), std::nullopt) << text;
}

TEST(time_text, refuses_signs_where_digits_belong) {
  for (const auto* text : {"1970-01-01T-1:00:00Z", "1970-01-01T00:-1:00Z", "1970-01-01T00:00:-1Z",
                           "-970-01-01T00:00:00Z", "1970-01-01T+1:00:00Z"})
    EXPECT_EQ(from_rfc3339(text), std::nullopt) << text;
}

TEST(time_text, refuses_a_fraction_without_digits) {
  EXPECT_EQ(from_rfc3339("1970-01-01T00:00:00.Z"), std::nullopt);
}

TEST(foreign_text, is_made_storable_on_one_line_or_several) {
  EXPECT_EQ(one_line("a\nb\tc\x7f"
                     "d\0e"s,
                     100),
            "a b c d e");
  EXPECT_EQ(storable_text("a\nb\tc\0d\r"s, 100), "a\nb\tc d ");
  EXPECT_EQ(one_line("zürich \xff!", 100), "zürich \xef\xbf\xbd!");
  EXPECT_EQ(one_line("aü", 2), "a") << "no half characters";
  EXPECT_EQ(one_line("abc", 3), "abc");
  EXPECT_EQ(one_line("", 3), "");
}

}  // namespace
}  // namespace settle
