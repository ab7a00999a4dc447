#include "settle/value.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "settle/database.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle {
namespace {

using test::code_of;

enum plain { seven = 7 };
enum class scoped { one };

template <class T>
constexpr bool is_value = std::is_constructible_v<value, T>;

// What would be rounded, or taken for something else, does not compile.
static_assert(is_value<bool> && is_value<std::int8_t> && is_value<std::uint8_t> && is_value<std::size_t>);
static_assert(is_value<long long> && is_value<unsigned long long> && is_value<float> && is_value<plain>);
static_assert(!is_value<char> && !is_value<wchar_t> && !is_value<char8_t> && !is_value<char32_t>);
static_assert(!is_value<long double> && !is_value<__int128> && !is_value<unsigned __int128>);
static_assert(!is_value<scoped> && !is_value<std::vector<bool>::reference> && !is_value<int*>);

TEST(value, every_integer_that_fits_is_that_integer) {
  EXPECT_EQ(value(std::uint64_t{9'007'199'254'740'993}).integer(), 9'007'199'254'740'993)
      << "a double has no room for it";
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(value(static_cast<std::uint64_t>(most)).integer(), most);
  EXPECT_EQ(value(static_cast<unsigned long long>(most)).integer(), most);
  EXPECT_EQ(value(std::numeric_limits<std::int64_t>::min()).integer(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(value(std::string("abc").size()).integer(), 3);
  EXPECT_EQ(value(std::optional<std::size_t>(4)).integer(), 4);
  EXPECT_EQ(value(std::uint8_t{200}).integer(), 200);
  EXPECT_EQ(value(std::int8_t{-1}).integer(), -1);
  EXPECT_EQ(value(true).integer(), 1);
  EXPECT_EQ(value(seven).integer(), 7);
}

TEST(value, an_integer_that_does_not_fit_is_refused) {
  constexpr auto first_too_large = std::uint64_t{1} << 63U;
  EXPECT_EQ(code_of([&] { value{first_too_large}; }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { value{std::numeric_limits<unsigned long long>::max()}; }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { value{std::optional(first_too_large)}; }), errc::invalid_argument);
}

TEST(value, floating_point_is_a_real) {
  EXPECT_EQ(value(1.5F).real(), 1.5);
  EXPECT_EQ(value(0.1).real(), 0.1);
}

TEST(value, a_decimal_is_an_integer_if_it_is_whole_and_fits) {
  EXPECT_EQ(value(decimal{"42"}).integer(), 42);
  EXPECT_EQ(value(decimal{"-7.000"}).integer(), -7);
  EXPECT_EQ(value(decimal{"9223372036854775807"}).integer(), std::numeric_limits<std::int64_t>::max());
  for (const auto* other : {"42.5", "0.001", "9223372036854775808", "NaN", "Infinity", "", "-"})
    EXPECT_EQ(code_of([&] { value(decimal{other}).integer(); }), errc::unexpected_result) << other;
}

TEST(value, a_decimal_is_a_real_as_near_as_it_gets_and_a_text_with_all_its_digits) {
  const value price(decimal{"12345678901234567890.50"});
  EXPECT_EQ(price.text(), "12345678901234567890.50");
  EXPECT_DOUBLE_EQ(price.real(), 12'345'678'901'234'567'890.5);
  EXPECT_TRUE(std::isnan(value(decimal{"NaN"}).real()));
  EXPECT_EQ(value(decimal{"-Infinity"}).real(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(code_of([] { value(decimal{"1" + std::string(400, '0')}).real(); }), errc::unexpected_result);
  EXPECT_EQ(value(decimal{"0.10"}).take_text(), "0.10");
}

TEST(value, a_boolean_is_the_integer_0_or_1) {
  EXPECT_TRUE(value(true).boolean());
  EXPECT_FALSE(value(0).boolean());
  for (const auto& other : {value(2), value("true"), value(nullptr), value(1.0)})
    EXPECT_EQ(code_of([&] { (void)other.boolean(); }), errc::unexpected_result);
}

std::string refusal_of(const auto& action) {
  try {
    action();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unexpected_result) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(value, that_is_read_as_another_type_says_what_to_do_and_not_what_it_holds) {
  const auto says = [](const std::string& told, std::string_view part) {
    EXPECT_NE(told.find(part), std::string::npos) << told;
    EXPECT_EQ(told.find("secret"), std::string::npos) << told;
  };
  says(refusal_of([] { value("secret").integer(); }), "is text where an integer was expected: cast it");
  says(refusal_of([] { value("secret").time(); }), "is text where an integer was expected: cast it");
  says(refusal_of([] { value("secret").real(); }), "is text where a real was expected: cast it");
  says(refusal_of([] { (void)value("secret").bytes(); }), "read text()");
  says(refusal_of([] { (void)value(blob{"secret"}).text(); }), "read bytes()");
  says(refusal_of([] { (void)value(nullptr).text(); }), "is null where text was expected: look at is_null()");
  says(refusal_of([] { (void)value(7).text(); }), "cast(… as text)");
  says(refusal_of([] { value(1.5).integer(); }), "read real()");
  says(refusal_of([] { value(decimal{"1.5"}).integer(); }), "cast(round(…) as bigint)");
  says(refusal_of([] { value("secret").take_bytes(); }), "read text()");
}

TEST(result, made_by_hand_refuses_rows_and_columns_that_it_does_not_have) {
  result two({value(1), value(2)}, 2, 0);
  EXPECT_EQ(two[0][1].integer(), 2);
  refusal_of([&] { (void)two[0][2]; });
  refusal_of([&] { (void)two[1]; });
  refusal_of([&] { (void)two.cell(0, 2); });
  refusal_of([&] { (void)two.cell(1, 0); });
  refusal_of([&] { (void)two.take(0, 2); });
  refusal_of([&] { (void)result()[0]; });
}

// Rows that cannot be decoded: the result stays as it was.
struct unreadable final : undecoded_rows {
  std::size_t size() const override { return 1; }
  value cell(std::size_t, std::size_t column) const override {
    if (column == 1) throw error(errc::statement_failed, "a type that has no value");
    return 7;
  }
};

TEST(result, that_cannot_be_decoded_keeps_what_can) {
  const result found(std::make_shared<unreadable>(), 2, 0);
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(code_of([&] { (void)found[0]; }), errc::statement_failed);
    EXPECT_EQ(found.size(), 1U);
    EXPECT_EQ(found.cell(0, 0).integer(), 7);
  }
}

}  // namespace
}  // namespace settle
