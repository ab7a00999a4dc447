#include "webhook/source_state.hpp"

#include <gtest/gtest.h>

namespace settle::hooks {
namespace {

using namespace std::chrono_literals;

const timestamp now{1'000s};

TEST(webhook_source, waits_for_what_is_away_and_goes_on_with_the_first_success) {
  source_state of({1s, 10s});
  EXPECT_EQ(of.got_through(7, now), std::nullopt) << "nothing was away";
  of.meets_outage(1, now);
  EXPECT_FALSE(of.away().may_try(now + 999ms));
  EXPECT_TRUE(of.away().may_try(now + 1s));
  EXPECT_EQ(of.got_through(2, now + 3s), 3s);
  EXPECT_FALSE(of.away().lasts());
}

TEST(webhook_source, leaves_an_event_alone_with_its_outage_once_others_get_through) {
  constexpr auto away = failure_class::outage;
  source_state of({1s, 10s});
  EXPECT_FALSE(of.is_everybodys(failure_class::poison, 1));
  EXPECT_TRUE(of.is_everybodys(away, 1));
  of.meets_outage(1, now);
  EXPECT_TRUE(of.is_everybodys(away, 1)) << "nobody has got through since";
  of.got_through(2, now);
  EXPECT_FALSE(of.is_everybodys(away, 1));
  EXPECT_TRUE(of.is_everybodys(away, 3)) << "one that has not met it before";
  of.got_through(1, now);
  EXPECT_TRUE(of.is_everybodys(away, 1)) << "what it had met is forgotten";
}

TEST(webhook_source, doubts_the_first_events_after_a_start_and_those_that_were_marked) {
  source_state of({1s, 10s});
  taken plain, suspect;
  suspect.starts = 1;
  EXPECT_TRUE(of.is_doubted(plain));
  for (std::int64_t i = 0; i < marked_after_start; ++i) of.marked();
  EXPECT_FALSE(of.is_doubted(plain));
  EXPECT_TRUE(of.is_doubted(suspect));
}

TEST(webhook_source, rests_an_event_the_longer_the_more_processes_have_ended_over_it) {
  EXPECT_EQ(mark_pauses.after(1), 2s);
  EXPECT_EQ(mark_pauses.after(2), 8s);
  EXPECT_EQ(mark_pauses.after(1'000), 5min);
}

}  // namespace
}  // namespace settle::hooks
