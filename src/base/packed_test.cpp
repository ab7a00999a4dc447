#include "base/packed.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace settle {
namespace {

std::vector<std::string> unpacked_keys(std::string_view packed) {
  std::vector<std::string> all;
  packed_keys from(packed);
  while (from.next()) all.emplace_back(from.key());
  EXPECT_FALSE(from.is_broken());
  return all;
}

std::vector<std::string> there_and_back(const std::vector<std::string_view>& keys) {
  return unpacked_keys(pack_keys(keys));
}

using place_row = std::tuple<std::string, std::string, std::string, int, std::string>;

std::vector<place_row> unpacked_places(std::string_view packed) {
  std::vector<place_row> all;
  packed_places from(packed);
  while (from.next())
    all.emplace_back(std::string(from.log()), std::string(from.position()), std::string(from.source()),
                     from.lane(), from.place());
  EXPECT_FALSE(from.is_broken());
  return all;
}

TEST(packed, numbers_of_any_size_come_back) {
  const std::vector<std::uint64_t> numbers{
      0, 1, 127, 128, 300, 1U << 31U, std::numeric_limits<std::uint64_t>::max()};
  std::string packed;
  for (const auto number : numbers) pack_number(packed, number);
  unpacker from(packed);
  for (const auto number : numbers) EXPECT_EQ(from.number(), number);
  EXPECT_TRUE(from.at_end());
  EXPECT_FALSE(from.is_broken());
}

TEST(packed, ids_come_back_and_take_less_than_their_bytes) {
  const std::vector<std::string_view> ids{"0192f3a1-77b2-7c11-8000-0123456789ab",
                                          "0192f3a1-77b2-7c12-9fff-fedcba987654"};
  EXPECT_EQ(there_and_back(ids), (std::vector<std::string>(ids.begin(), ids.end())));
  EXPECT_LT(pack_keys(ids).size(), 32U);
}

TEST(packed, one_id_and_the_same_id_twice_come_back) {
  const std::string_view id = "0192f3a1-77b2-7c11-8000-0123456789ab";
  EXPECT_EQ(there_and_back({id}), std::vector<std::string>{std::string(id)});
  EXPECT_EQ(there_and_back({id, id}), (std::vector<std::string>{std::string(id), std::string(id)}));
}

TEST(packed, what_only_looks_like_an_id_comes_back_as_it_was) {
  const std::vector<std::string_view> others{"0192F3A1-77B2-7C11-8000-0123456789AB",
                                             "0192f3a1-77b2-7c11-8000-0123456789a",
                                             "0192f3a1-77b2-7c11-8000-0123456789ag",
                                             "0192f3a1x77b2-7c11-8000-0123456789ab",
                                             "0192f3a1-77b2-7c11-8000-0123456789\xc3\xa4",
                                             "",
                                             "order-17",
                                             std::string_view("a\0b", 3)};
  EXPECT_EQ(there_and_back(others), (std::vector<std::string>(others.begin(), others.end())));
}

TEST(packed, ids_come_before_other_keys) {
  const std::string_view id = "0192f3a1-77b2-7c11-8000-0123456789ab";
  EXPECT_EQ(there_and_back({"a", id, "b"}), (std::vector<std::string>{std::string(id), "a", "b"}));
}

TEST(packed, no_keys_are_no_keys) {
  EXPECT_TRUE(there_and_back({}).empty());
  EXPECT_TRUE(unpacked_keys("").empty());
}

TEST(packed, places_come_back) {
  const std::string number("\0\0\0\0\0\0\x12\x67", 8), highest("\x7f\xff\xff\xff\xff\xff\xff\xff"),
      bytes("\x80 is no number ");
  const std::vector<log_places> logs{
      {"orders/0", number, {{"here", {{0, "d3071"}, {255, "d3100"}, {17, "d3"}}}, {"there", {{3, ""}}}}},
      {"", "", {{"", {{128, "a3c120"}}}}},
      {"without", bytes, {}},
      {"orders/1", highest, {{"here", {{1, "b10"}}}}},
      {"orders/2", bytes, {{"here", {{2, "b11"}}}}}};
  EXPECT_EQ(unpacked_places(pack_places(logs)),
            (std::vector<place_row>{{"orders/0", number, "here", 0, "d3071"},
                                    {"orders/0", number, "here", 255, "d3100"},
                                    {"orders/0", number, "here", 17, "d3"},
                                    {"orders/0", number, "there", 3, ""},
                                    {"", "", "", 128, "a3c120"},
                                    {"orders/1", highest, "here", 1, "b10"},
                                    {"orders/2", bytes, "here", 2, "b11"}}));
  EXPECT_TRUE(unpacked_places("").empty());
}

// Positions were numbers once, and notes of then are in databases for weeks.
TEST(packed, places_from_when_positions_were_numbers_come_back) {
  std::string packed;
  pack_text(packed, "orders/0");
  pack_number(packed, 0x1267);
  pack_number(packed, 1);
  pack_text(packed, "here");
  pack_text(packed, "");
  pack_number(packed, 1);
  packed += '\x03';
  pack_text(packed, "a7");
  EXPECT_EQ(unpacked_places(packed),
            (std::vector<place_row>{{"orders/0", std::string("\0\0\0\0\0\0\x12\x67", 8), "here", 3, "a7"}}));
}

// Wherever it is cut, reading ends, and what is missing is noticed unless the cut is between two texts.
TEST(packed, what_is_cut_off_ends_in_good_order) {
  const std::vector<std::string_view> keys{"0192f3a1-77b2-7c11-8000-0123456789ab",
                                           "ffffffff-77b2-7c11-8000-0123456789ab", "order-17"};
  const auto packed = pack_keys(keys);
  for (std::size_t length = 1; length < packed.size(); ++length) {
    packed_keys from(std::string_view(packed).substr(0, length));
    std::size_t read = 0;
    while (from.next()) ++read;
    EXPECT_LT(read, keys.size());
    EXPECT_TRUE(from.is_broken() || read == 2) << length;
  }
  const auto places = pack_places(std::vector<log_places>{{"log", "p", {{"source", {{1, "x"}, {2, "xy"}}}}}});
  for (std::size_t length = 1; length < places.size(); ++length) {
    packed_places from(std::string_view(places).substr(0, length));
    while (from.next()) {
    }
    EXPECT_TRUE(from.is_broken()) << length;
  }
}

// A few damaged bytes must not keep whoever reads them busy for years.
TEST(packed, a_number_of_equal_ids_that_no_batch_has_is_damage) {
  std::string packed;
  pack_number(packed, std::numeric_limits<std::uint64_t>::max());
  pack_text(packed, std::string(16, 'x'));
  packed_keys from(packed);
  EXPECT_FALSE(from.next());
  EXPECT_TRUE(from.is_broken());
}

}  // namespace
}  // namespace settle
