// What brokers and processes do to consumers: crashes, rebalances, zombies, lost acknowledgements, broken
// sessions and copies. Nothing is lost and nothing is doubled, on every kind of broker that can do it.
#include <gtest/gtest.h>

#include <chrono>

#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "support/child_process.hpp"
#include "support/scenario_broker.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::acknowledgement_loss;
using test::broker_kind;
using test::order_world;
using test::temp_dir;

struct broker_faults : ::testing::TestWithParam<broker_kind> {
  static constexpr int orders = 30;

  static void place_all(order_world& world) {
    for (int i = 0; i < orders; ++i) world.place(i);
    while (world.relay().run_once()) {
    }
  }

  static void drain_for(order_world& world, duration total) {
    for (duration passed{}; passed < total; passed += 500ms) {
      world.drain();
      world.time().advance(500ms);
    }
    world.drain();
  }

  void expect_all_applied(order_world& world, int how_many = orders) {
    const auto report = world.verify();
    EXPECT_TRUE(on.is_intact(report)) << report.lost << " lost, " << report.doubled << " doubled, "
                                      << report.ghosts << " invented, " << report.reordered << " reordered";
    EXPECT_EQ(report.applied, how_many);
    EXPECT_EQ(report.pending, 0);
  }

  static consumer_options small_batches() { return {.name = "warehouse", .batch_max = 2}; }

  temp_dir dir;
  test::scenario_broker on{GetParam()};
};

// A consumer in a process of its own. Its exit code, or minus the signal that killed it.
int run_process(const temp_dir& dir, test::scenario_broker& on, int hours_later) {
  test::child_process child([&] {
    order_world world(dir, on.with({.hours_later = hours_later}));
    world.killing.insert(test::order_name(2));
    for (int i = 0; i < 24; ++i) {
      world.drain();
      world.time().advance(500ms);
    }
    return 0;
  });
  return child.wait();
}

// Proves C9
TEST_P(broker_faults, an_order_over_which_three_processes_die_is_a_dead_letter_and_the_rest_is_applied) {
  constexpr int some = 6;
  {
    order_world world(dir, on.with({}));
    for (int i = 0; i < some; ++i) world.place(i);
    while (world.relay().run_once()) {
    }
  }  // with its threads: a fork takes none along
  for (int died = 1; died <= 3; ++died) EXPECT_EQ(run_process(dir, on, died), -SIGKILL) << died;
  EXPECT_EQ(run_process(dir, on, 4), 0) << "three have died";
  order_world world(dir, on.with({.hours_later = 5}));
  world.drain();
  const auto letters = dead_letters(world.warehouse());
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].reason, dead_letter_reason::crashed_process);
  const auto report = world.verify();
  EXPECT_TRUE(on.is_intact(report));
  EXPECT_EQ(report.applied, some - 1);
  EXPECT_EQ(report.given_up, 1);
  EXPECT_EQ(report.pending, 0);
}

// Proves C1: what was delivered to a process that is killed is delivered again
TEST_P(broker_faults, what_a_killed_process_had_in_hand_is_applied_by_the_next) {
  {
    order_world world(dir, on.with({}));
    place_all(world);
  }
  for (int after = 1; after <= 4; ++after) {
    test::child_process child([&] {
      order_world world(dir, on.with({.hours_later = after}));
      auto careful = world.make_consumer(small_batches());
      for (int i = 0; i < after; ++i) careful->run_once();
      ::raise(SIGKILL);
      return 0;
    });
    EXPECT_EQ(child.wait(), -SIGKILL);
  }
  order_world world(dir, on.with({.hours_later = 9}));
  drain_for(world, 5s);
  expect_all_applied(world);
}

INSTANTIATE_TEST_SUITE_P(on, broker_faults, ::testing::ValuesIn(test::every_broker()),
                         [](const auto& of) { return name_of(of.param); });

// Those that the brokers in memory have on request.
struct requested_faults : broker_faults {};

// Proves C1
TEST_P(requested_faults, acknowledgements_that_are_lost_bring_copies_and_no_second_effect) {
  for (const auto how :
       {acknowledgement_loss::unnoticed, acknowledgement_loss::refused, acknowledgement_loss::answer_lost}) {
    dir.clear();
    on.reset();
    order_world world(dir, on.with({}));
    place_all(world);
    on.in_memory()->lose_acknowledgements(2, how);
    auto consumer = world.make_consumer(small_batches());
    for (int i = 0; i < 100; ++i) try {
        consumer->run_once();
        if (i % 10 == 9) consumer->leave();
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::destination_unavailable);
        EXPECT_NE(how, acknowledgement_loss::unnoticed);
      }
    expect_all_applied(world);
  }
}

// Proves C10
TEST_P(requested_faults, a_broker_that_is_restored_from_a_copy_brings_nothing_to_run_again) {
  order_world world(dir, on.with({}));
  place_all(world);
  drain_for(world, 1s);
  on.in_memory()->forget_acknowledgements("warehouse");
  drain_for(world, 10s);
  EXPECT_EQ(world.consumer().counts().duplicates, orders);
  expect_all_applied(world);
}

// Proves C3
TEST_P(requested_faults, a_broker_that_does_not_answer_stops_nobody_for_longer_than_its_timeout) {
  order_world world(dir, on.with({}));
  place_all(world);
  auto patient = world.make_consumer({.name = "warehouse", .batch_max = 2, .broker_timeout = 50ms});
  patient->run_once();
  on.in_memory()->hang();
  const auto started = std::chrono::steady_clock::now();
  EXPECT_THROW(
      {
        for (int i = 0; i < 3; ++i) patient->run_once();
      },
      error);
  EXPECT_LT(std::chrono::steady_clock::now() - started, 5s);
  on.in_memory()->hang(false);
  while (patient->run_once()) {
  }
  EXPECT_EQ(patient->counts().failures, 0) << "it is nobody's fault";
  expect_all_applied(world);
}

INSTANTIATE_TEST_SUITE_P(on, requested_faults,
                         ::testing::Values(broker_kind::log_in_memory, broker_kind::queue_in_memory),
                         [](const auto& of) { return name_of(of.param); });

struct faults_of_logs : broker_faults {};

// Proves C1, O4
TEST_P(faults_of_logs, rebalances_between_two_consumers_lose_double_and_reorder_nothing) {
  order_world world(dir, on.with({}));
  auto one = world.make_consumer(small_batches());
  auto two = world.make_consumer(small_batches());
  for (int i = 0; i < orders; ++i) {
    world.place(i);
    world.relay().run_once();
    if (i % 3 == 0) on.log().rebalance("warehouse");
    if (i % 7 == 0) on.log().expel_members("warehouse");
    one->run_once();
    if (i % 2 == 0) two->run_once();
  }
  for (int i = 0; i < 20; ++i) {
    while (one->run_once() || two->run_once()) {
    }
    world.time().advance(1s);
  }
  EXPECT_GT(two->counts().applied, 0);
  expect_all_applied(world);
}

// Proves C1: what is done is acknowledged before the partition goes
TEST_P(faults_of_logs, a_rebalance_repeats_nothing_that_was_done) {
  order_world world(dir, on.with({}));
  place_all(world);
  auto one = world.make_consumer(small_batches());
  for (int i = 0; i < 5; ++i) one->run_once();
  ASSERT_GT(one->counts().applied, 0);
  on.log().rebalance("warehouse");
  for (int i = 0; i < 50; ++i) one->run_once();
  EXPECT_EQ(one->counts().duplicates, 0);
  expect_all_applied(world);
}

// Proves C1, C4: the fence is the database's own, and the broker's word is not needed
TEST_P(faults_of_logs, a_zombie_writes_nothing_after_another_has_taken_over) {
  order_world world(dir, on.with({}));
  const auto place = [&](int first, int last) {
    for (int i = first; i < last; ++i) world.place(3 * i);  // of one customer: one partition
    while (world.relay().run_once()) {
    }
  };
  place(0, 20);
  auto zombie = world.make_consumer(small_batches());
  zombie->run_once();
  const auto before = zombie->counts().applied;
  ASSERT_GT(before, 0);
  on.log().keep_zombies();
  on.log().expel_members("warehouse");
  auto heir = world.make_consumer(small_batches());
  for (int i = 0; i < 50 && heir->counts().applied < 3; ++i) {  // careful at first
    heir->run_once();
    world.time().advance(100ms);
  }
  ASSERT_GE(heir->counts().applied, 3);
  ASSERT_LT(heir->counts().applied + before, 15);
  for (int i = 0; i < 10; ++i) zombie->run_once();
  place(20, orders);
  for (int i = 0; i < 10; ++i) zombie->run_once();
  EXPECT_EQ(zombie->counts().applied, before);
  EXPECT_EQ(zombie->counts().failures, 0) << "it is nobody's fault";
  EXPECT_GT(world.log().count("partition_has_another_owner"), 0u);
  for (int i = 0; i < 100; ++i) {
    heir->run_once();
    world.time().advance(100ms);
  }
  expect_all_applied(world);
}

INSTANTIATE_TEST_SUITE_P(on, faults_of_logs, ::testing::Values(broker_kind::log_in_memory),
                         [](const auto& of) { return name_of(of.param); });

struct faults_of_queues : broker_faults {};

// Proves C1, C5
TEST_P(faults_of_queues, broken_sessions_and_copies_to_two_consumers_lose_and_double_nothing) {
  order_world world(dir, on.with({}));
  auto one = world.make_consumer(small_batches());
  auto two = world.make_consumer(small_batches());
  for (int i = 0; i < orders; ++i) {
    world.place(i);
    world.relay().run_once();
    if (i % 4 == 0) on.queue().deliver_twice(3);
    if (i % 5 == 0) on.queue().break_sessions("warehouse");
    one->run_once();
    if (i % 2 == 0) two->run_once();
  }
  for (int i = 0; i < 20; ++i) {
    while (one->run_once() || two->run_once()) {
    }
    world.time().advance(1s);
  }
  EXPECT_GT(one->counts().applied, 0);
  EXPECT_GT(two->counts().applied, 0);
  EXPECT_GT(one->counts().duplicates + two->counts().duplicates, 0);
  expect_all_applied(world);
}

INSTANTIATE_TEST_SUITE_P(on, faults_of_queues, ::testing::Values(broker_kind::queue_in_memory),
                         [](const auto& of) { return name_of(of.param); });

}  // namespace
}  // namespace settle
