#include "inspect/saga_timeline.hpp"

#include <gtest/gtest.h>

#include "settle/storable.hpp"

namespace settle::inspect {
namespace {

using namespace std::chrono_literals;
using sagas::journal_row;
using sagas::row_kind;

struct saga_timelines : ::testing::Test {
  int add(journal_row row, duration after = 1s) {
    now += after;
    row.at = now;
    return rows.append(std::move(row)).n;
  }
  saga_timeline read() const { return timeline_of(rows, given); }

  timestamp now{1000s};
  sagas::journal rows;
  std::map<int, std::string> given;
};

// Proves S1
TEST_F(saga_timelines, have_one_entry_for_a_call_with_its_time_and_result) {
  add({.kind = row_kind::done, .name = "reserve", .result = "7"});
  const int call = add({.kind = row_kind::intent, .name = "charge", .input = "o-1"});
  add({.kind = row_kind::outcome, .name = "charge", .result = "ch_1", .of = call}, 3s);
  const auto all = read();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].what, saga_act::step);
  EXPECT_EQ(all[0].result, "7");
  EXPECT_FALSE(all[0].ended_at) << "its beginning is not written down";
  EXPECT_EQ(all[1].what, saga_act::call);
  EXPECT_EQ(all[1].end, saga_end::done);
  EXPECT_EQ(*all[1].ended_at - all[1].at, 3s);
  EXPECT_EQ(all[1].result, "ch_1");
  EXPECT_FALSE(all[1].was_unknown);
}

// Proves S1
TEST_F(saga_timelines, tell_unknown_from_under_way_and_remember_that_it_was_unknown) {
  const int call = add({.kind = row_kind::intent, .name = "charge", .input = ""});
  EXPECT_EQ(read()[0].end, saga_end::none);
  add({.kind = row_kind::unknown, .name = "charge", .result = "no answer", .of = call});
  EXPECT_EQ(read()[0].end, saga_end::unknown);
  EXPECT_EQ(read()[0].why, "no answer");
  add({.kind = row_kind::refused, .name = "charge", .result = "no money", .of = call});
  EXPECT_EQ(read()[0].end, saga_end::refused);
  EXPECT_EQ(read()[0].why, "no money");
  EXPECT_TRUE(read()[0].was_unknown);
}

// Proves S3
TEST_F(saga_timelines, tell_until_when_a_saga_waits_and_who_has_given_it_the_event) {
  const int wait = add({.kind = row_kind::waiting,
                        .scope = "1.0/",
                        .name = "picked.up",
                        .input = "r-1",
                        .result = detail::store(now + 5h)});
  EXPECT_EQ(read()[0].until, timestamp(1000s + 5h));
  EXPECT_EQ(read()[0].name, "1.0/picked.up");
  EXPECT_EQ(read()[0].key, "r-1");
  given[wait] = id_by_hand("01890a5d", "ann", "by telephone: yes");
  add({.kind = row_kind::event, .name = "picked.up", .result = "{}", .of = wait}, 2h);
  EXPECT_EQ(read()[0].end, saga_end::done);
  EXPECT_EQ(read()[0].by, "ann: by telephone: yes");
  EXPECT_EQ(hand_of("01890a5d-ac96-774b-bcce-b302099a8057"), "");
  const int sleep = add({.kind = row_kind::timer, .result = detail::store(now + 1h)});
  add({.kind = row_kind::timed_out, .of = sleep}, 1h);
  EXPECT_EQ(read()[1].end, saga_end::done) << "a sleep that is over was not missed";
  const int second =
      add({.kind = row_kind::waiting, .name = "picked.up", .input = "r-1", .result = "garbage"});
  EXPECT_FALSE(read()[2].until) << "of another program's form";
  add({.kind = row_kind::timed_out, .of = second});
  EXPECT_EQ(read()[2].end, saga_end::timed_out);
}

// Proves S2
TEST_F(saga_timelines, have_an_entry_for_each_undo_and_mark_what_was_undone) {
  const int reserve = add({.kind = row_kind::done, .name = "reserve", .result = "7"});
  const int charge = add({.kind = row_kind::intent, .name = "charge", .input = ""});
  add({.kind = row_kind::outcome, .name = "charge", .of = charge});
  add({.kind = row_kind::undo_begun, .result = "no shipment"});
  add({.kind = row_kind::undo_intent, .name = "charge", .of = charge});
  add({.kind = row_kind::held, .name = "charge", .result = "the bank is away", .of = charge});
  add({.kind = row_kind::operated, .name = "retry", .result = "ann: it is back"});
  add({.kind = row_kind::undone, .name = "charge", .of = charge}, 4s);
  add({.kind = row_kind::undone, .name = "reserve", .of = reserve});
  const auto all = read();
  ASSERT_EQ(all.size(), 7u);
  EXPECT_TRUE(all[0].undone);
  EXPECT_TRUE(all[1].undone);
  EXPECT_EQ(all[2].what, saga_act::undo_begun);
  EXPECT_EQ(all[2].why, "no shipment");
  EXPECT_EQ(all[3].what, saga_act::undo);
  EXPECT_EQ(all[3].name, "charge");
  EXPECT_EQ(*all[3].ended_at - all[3].at, 6s);
  EXPECT_EQ(all[4].what, saga_act::held);
  EXPECT_EQ(all[4].name, "charge");
  EXPECT_EQ(all[5].what, saga_act::ordered);
  EXPECT_EQ(all[5].why, "ann: it is back");
  EXPECT_EQ(all[6].name, "reserve");
  EXPECT_FALSE(all[6].ended_at) << "it is one transaction";
}

}  // namespace
}  // namespace settle::inspect
