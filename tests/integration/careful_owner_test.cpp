// An owner that takes over from one that died is careful, whatever goes wrong while it takes over. On both
// databases.
#include <gtest/gtest.h>

#include "consume/fence.hpp"
#include "settle/error.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

// Fails once, when `point` is reached for the nth time.
class one_failure final : public fault_points {
 public:
  one_failure(std::string point, int nth) : point_(std::move(point)), left_(nth) {}

  void reached(std::string_view point) override {
    if (point == point_ && --left_ == 0)
      throw error::with_unknown_outcome(errc::store_unavailable, "no answer");
  }

 private:
  std::string point_;
  int left_;
};

struct careful_owner : test::failing_consumer {
  std::unique_ptr<database> open_with(fault_points& faults) {
    const environment env{
        .time = &time, .random = &random, .log = &log, .counters = &counters, .faults = &faults};
    if (GetParam() == dialect::postgres) return postgres::open(own->conninfo(), {.env = env});
    return sqlite::open(dir.file("service.db"), {.env = env});
  }

  // Takes the partitions over as a new owner, again and again until it is done, and says which of them were
  // left open.
  names take_over(database& on, const names& partitions) {
    consume::fence_keeper keeper("tester", 1s);
    std::vector<delivery> batch(partitions.size());
    for (std::uint32_t i = 0; i < partitions.size(); ++i) {
      batch[i].tag.partition = i;
      keeper.assign({i, 1, partitions[i]}, "owner " + std::to_string(++owners));
    }
    names left_open;
    for (int tries = 0; tries < 3; ++tries) try {
        keeper.take_over(on, keeper.of(std::span<const delivery>(batch)), {},
                         [&](std::uint32_t partition) { left_open.push_back(partitions[partition]); });
        break;
      } catch (const error& e) {
        EXPECT_TRUE(e.outcome_unknown()) << e.what();
        ++failed;
      }
    return left_open;
  }

  int failed = 0;
  int owners = 0;
};

// Proves C9
TEST_P(careful_owner, stays_careful_if_the_answer_to_its_take_over_is_lost) {
  take_over(*db, {"things/0"});  // and dies
  one_failure lost("consumer.take_over.after", 1);
  EXPECT_EQ(take_over(*open_with(lost), {"things/0"}), names{"things/0"});
  EXPECT_EQ(failed, 1);
}

// Proves C9
TEST_P(careful_owner, stays_careful_with_one_partition_if_the_next_cannot_be_had_at_once) {
  take_over(*db, {"things/0", "things/1"});
  one_failure away("consumer.take_over.before", 2);
  EXPECT_EQ(take_over(*open_with(away), {"things/0", "things/1"}), (names{"things/0", "things/1"}));
  EXPECT_EQ(failed, 1);
}

// Proves C9
TEST_P(careful_owner, who_comes_after_one_that_was_careful_and_left_in_order_need_not_be) {
  take_over(*db, {"things/0"});
  broker.partition = "things/0";
  for (const auto* id : {"2", "3"}) {
    deliver(id, "a");
    auto owner = make_consumer();
    drain_for(*owner, 1s);
    owner->leave();
  }
  EXPECT_EQ(log.count("cautious_mode"), 1u) << "the first of the two";
  EXPECT_EQ(effects(), (names{"2", "3"}));
}

INSTANTIATE_TEST_SUITE_P(databases, careful_owner, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
