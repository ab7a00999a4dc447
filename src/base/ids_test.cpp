#include "settle/ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "settle/testing.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

class ids : public ::testing::Test {
 protected:
  static std::uint64_t milliseconds_of(const uuid& id) {
    std::uint64_t ms = 0;
    for (int i = 0; i < 6; ++i) ms = ms << 8 | id.bytes()[static_cast<std::size_t>(i)];
    return ms;
  }

  testing::manual_time time_{timestamp(1'700'000'000s)};
  testing::seeded_random random_{7};
  id_source source_{time_, random_};
};

TEST_F(ids, are_uuids_of_version_7) {
  for (int i = 0; i < 1000; ++i) {
    const auto id = source_.next();
    EXPECT_EQ(id.bytes()[6] >> 4, 7);
    EXPECT_EQ(id.bytes()[8] >> 6, 0b10);
  }
}

TEST_F(ids, carry_the_time_in_milliseconds) {
  EXPECT_EQ(milliseconds_of(source_.next()), 1'700'000'000'000u);
  time_.advance(1234ms);
  EXPECT_EQ(milliseconds_of(source_.next()), 1'700'000'001'234u);
}

TEST_F(ids, grow_while_the_clock_stands_still_even_past_4096_in_one_millisecond) {
  auto last = source_.next();
  for (int i = 0; i < 10'000; ++i) {
    const auto next = source_.next();
    ASSERT_LT(last, next) << "id number " << i;
    last = next;
  }
  EXPECT_LE(milliseconds_of(last), 1'700'000'000'004u) << "borrowed no more milliseconds than needed";
}

TEST_F(ids, grow_when_the_clock_jumps_back) {
  const auto before = source_.next();
  time_.advance(-1h);
  const auto after = source_.next();
  EXPECT_LT(before, after);
  EXPECT_EQ(milliseconds_of(after), milliseconds_of(before));
}

TEST_F(ids, grow_when_the_clock_catches_up_with_borrowed_milliseconds) {
  auto last = source_.next();
  for (int i = 0; i < 9'000; ++i) last = source_.next();
  for (int ms = 0; ms < 10; ++ms) {
    time_.advance(1ms);
    const auto next = source_.next();
    EXPECT_LT(last, next);
    last = next;
  }
}

TEST_F(ids, grow_as_text_as_they_grow_as_values) {
  auto last = source_.next();
  for (int i = 0; i < 100; ++i) {
    time_.advance(1ms);
    const auto next = source_.next();
    EXPECT_LT(last.text(), next.text());
    last = next;
  }
}

TEST_F(ids, of_two_sources_with_one_clock_differ) {
  testing::seeded_random other_random{8};
  id_source other(time_, other_random);
  std::set<uuid> all;
  for (int i = 0; i < 1000; ++i) {
    all.insert(source_.next());
    all.insert(other.next());
  }
  EXPECT_EQ(all.size(), 2000u);
}

TEST_F(ids, drawn_by_many_threads_are_all_different) {
  constexpr int threads = 4, each = 2000;
  std::vector<std::vector<uuid>> drawn(threads);
  {
    std::vector<std::jthread> drawers;
    for (auto& mine : drawn)
      drawers.emplace_back([&] {
        for (int i = 0; i < each; ++i) mine.push_back(source_.next());
      });
  }
  std::set<uuid> all;
  for (const auto& mine : drawn) {
    EXPECT_TRUE(std::ranges::is_sorted(mine)) << "monotone for each caller";
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(threads * each));
}

TEST(uuid_text, is_lower_case_with_dashes) {
  const uuid id({0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x7a, 0xbc, 0x8d, 0xef, 0, 1, 2, 3, 4, 0xff});
  EXPECT_EQ(id.text(), "018bcfe5-6800-7abc-8def-0001020304ff");
  EXPECT_EQ(uuid::parse(id.text()), id);
  EXPECT_EQ(uuid::parse("018BCFE5-6800-7ABC-8DEF-0001020304FF"), id);
}

TEST(uuid_text, anything_but_the_36_characters_is_refused) {
  for (const auto* text : {"", "018bcfe5-6800-7abc-8def-0001020304f", "018bcfe5-6800-7abc-8def-0001020304fff",
                           "018bcfe568007abc8def0001020304ff", "{18bcfe5-6800-7abc-8def-0001020304f}",
                           "018bcfe5-6800-7abc-8def-0001020304fg", "018bcfe5x6800-7abc-8def-0001020304ff",
                           "018bcfe5-6800-7abc-8def_0001020304ff", "018bcfe-56800-7abc-8def-0001020304ff",
                           " 18bcfe5-6800-7abc-8def-0001020304ff", "018bcfe5-6800-7abc-8def-00010203+4ff"})
    EXPECT_EQ(uuid::parse(text), std::nullopt) << text;
  EXPECT_EQ(uuid::parse(std::string_view("018bcfe5-6800-7abc-8def-000102030\0ff", 36)), std::nullopt);
}

TEST(uuid_text, nil_is_a_value_that_can_be_told) {
  EXPECT_TRUE(uuid().is_nil());
  EXPECT_EQ(uuid::parse("00000000-0000-0000-0000-000000000000"), uuid());
  EXPECT_FALSE(system_ids().next().is_nil());
}

TEST(typed_ids, keep_their_uuid) {
  const auto id = system_ids().next_as<event_id>();
  EXPECT_EQ(event_id::parse(id.text()), id);
  EXPECT_EQ(event_id::parse("x"), std::nullopt);
  static_assert(!std::is_convertible_v<event_id, member_id>);
}

}  // namespace
}  // namespace settle
