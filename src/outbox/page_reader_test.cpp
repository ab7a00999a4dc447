#include "outbox/page_reader.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace settle::outbox {
namespace {

share_group at(std::int64_t seq) { return {{.tick = 1, .upto = 2, .seq = seq}, 0xffff}; }

// Pages of ten numbers each; the window ends with number 50.
page ten_more(const share_group& of) {
  const auto end = of.from.seq + 10;
  return {of, end < 50 ? cursor{1, 2, end} : cursor{2, 0, 0}, {}};
}

TEST(page_reader, hands_out_the_pages_of_a_window_in_their_order) {
  page_reader reader(at(0), ten_more);
  for (std::int64_t seq = 0; seq < 50; seq += 10) {
    const auto found = reader.take(at(seq));
    ASSERT_TRUE(found) << seq;
    EXPECT_EQ(found->of, at(seq));
  }
  EXPECT_EQ(reader.take({{.tick = 2, .upto = 0, .seq = 0}, 0xffff}), std::nullopt) << "the window has ended";
}

TEST(page_reader, is_of_no_use_to_whoever_has_not_published_everything) {
  page_reader reader(at(0), ten_more);
  ASSERT_TRUE(reader.take(at(0)));
  EXPECT_EQ(reader.take(at(4)), std::nullopt);
  EXPECT_EQ(reader.take({at(10).from, 0x00ff}), std::nullopt) << "other shares";
}

TEST(page_reader, reads_only_a_little_ahead) {
  std::atomic<int> fetched = 0;
  page_reader reader(at(0), [&](const share_group& of) {
    ++fetched;
    return page{of, {1, 2, of.from.seq + 10}, {}};
  });
  for (int taken = 0; taken < 20; ++taken) {
    ASSERT_TRUE(reader.take(at(10 * taken)));
    EXPECT_LE(fetched, taken + 4);
  }
}

TEST(page_reader, passes_a_failure_on_behind_the_pages_before_it) {
  page_reader reader(at(0), [](const share_group& of) {
    if (of.from.seq >= 20) throw std::runtime_error("the line is cut");
    return ten_more(of);
  });
  EXPECT_TRUE(reader.take(at(0)));
  EXPECT_TRUE(reader.take(at(10)));
  EXPECT_THROW(reader.take(at(20)), std::runtime_error);
}

TEST(page_reader, that_nobody_asks_any_more_ends) {
  for (int i = 0; i < 50; ++i) page_reader(at(0), ten_more);
}

}  // namespace
}  // namespace settle::outbox
