// Commit → relay → broker → consumer, in one process.
#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using test::order_world;
using test::temp_dir;

// Proves O1, C1
TEST(pipeline, applies_every_committed_order_once) {
  temp_dir dir;
  order_world world(dir);
  for (int i = 0; i < 20; ++i) world.place(i);
  world.drain();
  const auto report = world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.committed, 20);
  EXPECT_EQ(report.published, 20);
  EXPECT_EQ(report.applied, 20);
  EXPECT_EQ(report.pending, 0);
}

// Proves O1, C1, O4, V3
TEST(pipeline, survives_a_failure_and_a_kill_at_every_fault_point) {
  temp_dir dir;
  const auto explored = testing::explore({
      .prepare = [&] { dir.clear(); },
      .run =
          [&](fault_points& faults) {
            order_world world(dir, {.faults = &faults});
            for (int i = 0; i < 4; ++i) world.place(i);
            world.drain();
          },
      .recover =
          [&] {
            order_world world(dir, {.hours_later = 1});
            for (int i = 0; i < 4; ++i) world.place(i);
            world.drain();
          },
      .check =
          [&](const std::string& where) {
            order_world world(dir, {.hours_later = 2});
            const auto report = world.verify();
            EXPECT_TRUE(report.clean()) << where;
            EXPECT_EQ(report.committed, 4) << where;
            EXPECT_EQ(report.applied, 4) << where;
            EXPECT_EQ(report.pending, 0) << where;
          },
  });
  EXPECT_GT(explored.points.size(), 20u);
}

}  // namespace
}  // namespace settle
