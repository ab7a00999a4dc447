// The participant's guard on both databases: repeats, empty undos, late actions, lower epochs.
#include <thread>

#include "settle/participate.hpp"
#include "support/saga_world.hpp"

namespace settle {

inline void PrintTo(participation of, std::ostream* out) { *out << to_string(of); }

namespace test {
namespace {

using enum participation;

struct participants : saga_tests {
  // In a transaction that commits, with an effect if there is to be one.
  saga_entry handle(saga_op op, std::int64_t epoch = 1, const std::string& step = "charge") {
    auto tx = db->begin();
    auto entry = participate(tx, {saga, step, op, epoch});
    if (entry.fresh()) {
      const std::string what = (op == saga_op::act ? "did " : "undid ") + step;
      note(tx, "p", what);
      entry.record(tx, what);
    }
    tx.commit();
    return entry;
  }
  saga_id saga{uuid({1, 2, 3})};
};

// Proves S7
TEST_P(participants, do_a_step_once_and_answer_copies_as_recorded) {
  EXPECT_EQ(handle(saga_op::act).how(), fresh);
  const auto again = handle(saga_op::act, 2);
  EXPECT_EQ(again.how(), repeated);
  EXPECT_EQ(again.answer(), "did charge");
  EXPECT_EQ(handle(saga_op::act, 2, "other").how(), fresh);
  EXPECT_EQ(handle(saga_op::undo, 2).how(), fresh);
  const auto undone = handle(saga_op::undo, 3);
  EXPECT_EQ(undone.how(), repeated);
  EXPECT_EQ(undone.answer(), "undid charge");
  EXPECT_EQ(effects("p"), (texts{"did charge", "did other", "undid charge"}));
}

// Proves S7
TEST_P(participants, skip_an_undo_whose_action_never_came_and_refuse_that_action_later) {
  EXPECT_EQ(handle(saga_op::undo).how(), empty);
  EXPECT_EQ(handle(saga_op::undo).how(), empty) << "also when it is repeated";
  EXPECT_EQ(handle(saga_op::act).how(), late);
  EXPECT_EQ(effects("p"), texts{});
}

// Proves S7
TEST_P(participants, refuse_whoever_was_replaced) {
  EXPECT_EQ(handle(saga_op::act, 5).how(), fresh);
  EXPECT_EQ(handle(saga_op::act, 4, "other").how(), stale);
  EXPECT_EQ(handle(saga_op::undo, 4).how(), stale);
  EXPECT_EQ(effects("p"), texts{"did charge"});
}

// Proves S7
TEST_P(participants, forget_a_step_whose_transaction_rolled_back) {
  {
    auto tx = db->begin();
    EXPECT_TRUE(participate(tx, {saga, "charge", saga_op::act, 1}).fresh());
  }
  EXPECT_EQ(handle(saga_op::act).how(), fresh);
}

// Proves S7
TEST_P(participants, let_an_undo_wait_for_the_action_that_is_under_way) {
  std::optional<participation> undo;
  std::thread other;
  {
    auto tx = db->begin();
    const auto entry = participate(tx, {saga, "charge", saga_op::act, 1});
    note(tx, "p", "did charge");
    entry.record(tx, "did charge");
    other = std::thread([&] { undo = handle(saga_op::undo, 2).how(); });
    std::this_thread::sleep_for(200ms);
    tx.commit();
  }
  other.join();
  EXPECT_EQ(undo, fresh);
  EXPECT_EQ(effects("p"), (texts{"did charge", "undid charge"}));
}

INSTANTIATE_TEST_SUITE_P(databases, participants, both_databases, database_name);

}  // namespace
}  // namespace test
}  // namespace settle
