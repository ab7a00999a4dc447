// The bugs of locks that the zoo keeps, found as the real code is checked.
#include <gtest/gtest.h>

#include "base/zoo.hpp"
#include "settle/error.hpp"
#include "settle/lock.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

// How many of two owners could write: one that was paused, so that its clock stood still, and the one that
// has replaced it.
std::int64_t writers_with(zoo::bug which) {
  zoo::present = which;
  test::temp_dir dir;
  testing::manual_time paused, running;
  const auto one = sqlite::open(dir.file("service.db"), {.env = {.time = &paused}});
  const auto two = sqlite::open(dir.file("service.db"), {.env = {.time = &running}});
  migrate(*one);
  auto tx = one->begin();
  tx.execute("create table written (who text not null)");
  tx.commit();
  locks of_one(*one), of_two(*two);
  auto mine = of_one.try_acquire("job", {.ttl = 10s});
  running.advance(11s);
  auto theirs = of_two.try_acquire("job", {.ttl = 10s});
  const auto write = [](database& db, const lock& by) {
    try {
      auto writing = db.begin();
      fenced(writing, by);
      writing.execute("insert into written values ('x')");
      writing.commit();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::ownership_lost);
    }
  };
  write(*two, *theirs);
  write(*one, *mine);
  zoo::present = zoo::bug::none;
  return one->read().execute("select count(*) from written")[0][0].integer();
}

// Proves V3, G2
TEST(zoo_lock, a_fence_that_asks_the_clock_lets_a_paused_owner_write_and_is_found) {
  EXPECT_EQ(writers_with(zoo::bug::none), 1);
  EXPECT_EQ(writers_with(zoo::bug::fence_by_clock), 2);
}

}  // namespace
}  // namespace settle
