#include "outbox/table_rows.hpp"

#include <gtest/gtest.h>

#include "outbox/lanes.hpp"
#include "outbox/table_sql.hpp"
#include "settle/error.hpp"

namespace settle::outbox {
namespace {

using namespace std::chrono_literals;

const publish_result confirmed{};
const publish_result down{publish_status::destination_failed, "down"};
const publish_result rejected{publish_status::message_rejected, "no"};

table_batch sent(std::vector<table_row> rows) {
  table_batch batch;
  batch.messages.resize(rows.size());
  batch.rows = std::move(rows);
  return batch;
}

std::vector<std::string> ids(const std::vector<table_row>& rows) {
  std::vector<std::string> all;
  for (const auto& row : rows) all.push_back(row.id);
  return all;
}

using texts = std::vector<std::string>;

// Proves O4
TEST(table_rows, what_is_behind_a_row_that_was_not_confirmed_counts_as_unsent) {
  const auto batch = sent({{"1", "a"}, {"2", "b"}, {"3", "a"}, {"4", "b"}});
  const auto outcome = judge_rows(batch, std::vector{rejected, confirmed, confirmed, confirmed});
  EXPECT_EQ(ids(outcome.published), (texts{"2", "4"}));
  ASSERT_EQ(outcome.rejected.size(), 1u);
  EXPECT_EQ(outcome.rejected[0].row.id, "1");
  EXPECT_FALSE(outcome.down);
}

// Proves O3
TEST(table_rows, behind_a_rejected_row_nobody_is_charged_and_no_destination_is_down) {
  const auto batch = sent({{"1", "a"}, {"2", "a"}, {"3", "a"}});
  const auto outcome = judge_rows(batch, std::vector{rejected, rejected, down});
  EXPECT_EQ(outcome.rejected.size(), 1u);
  EXPECT_FALSE(outcome.down);
}

TEST(table_rows, a_destination_that_is_down_charges_nobody) {
  auto batch = sent({{"1", "a"}, {"2", "b"}});
  batch.unfit.push_back({{"3", "a"}, "no topic"});
  const auto outcome = judge_rows(batch, std::vector{down, down});
  EXPECT_TRUE(outcome.published.empty());
  EXPECT_TRUE(outcome.rejected.empty()) << "not even a row that makes no message: it is not its turn";
  EXPECT_EQ(outcome.down, "down");
}

// Proves O4
TEST(table_rows, of_the_same_key_on_another_topic_wait_for_nobody) {
  const auto batch = sent({{"1", "a", 0, "t"}, {"2", "a", 0, "u"}, {"3", "a", 0, "t"}});
  const auto outcome = judge_rows(batch, std::vector{rejected, confirmed, confirmed});
  EXPECT_EQ(ids(outcome.published), (texts{"2"}));
  EXPECT_EQ(outcome.rejected.size(), 1u);
}

TEST(table_rows, rows_without_a_key_stand_alone) {
  const auto batch = sent({{"1", ""}, {"2", ""}});
  const auto outcome = judge_rows(batch, std::vector{rejected, confirmed});
  EXPECT_EQ(ids(outcome.published), texts{"2"});
}

struct held : ::testing::Test {
  timestamp now{1'000'000s};
  held_keys keys{{100ms, 30s}};
};

TEST_F(held, a_key_waits_the_longer_the_more_attempts_it_had) {
  const table_row row{"1", "k"};
  EXPECT_EQ(keys.rejected(row, now), 1);
  EXPECT_EQ(keys.waiting(now), R"(["k\u001fk"])");
  EXPECT_EQ(keys.next(now, now + 1h), now + 100ms);
  now += 100ms;
  EXPECT_EQ(keys.waiting(now), "[]");
  EXPECT_EQ(keys.rejected(row, now), 2);
  EXPECT_EQ(keys.next(now, now + 1h), now + 400ms);
}

TEST_F(held, the_tables_own_count_goes_before_ours) {
  EXPECT_EQ(keys.rejected({"1", "k", 3}, now), 4);
  EXPECT_EQ(keys.rejected({"1", "k", 0}, now), 5) << "it has no such column, or was not written";
}

TEST_F(held, another_row_of_the_key_begins_at_one) {
  keys.rejected({"1", "k"}, now);
  keys.rejected({"1", "k"}, now);
  keys.release({"0", "k"});  // it came late and was published; row 1 is still to come
  EXPECT_EQ(keys.rejected({"1", "k"}, now), 3);
  EXPECT_EQ(keys.rejected({"2", "k"}, now), 1);
  keys.release({"2", "k"});
  EXPECT_EQ(keys.waiting(now), "[]");
}

TEST_F(held, no_more_keys_wait_than_are_allowed) {
  for (std::size_t i = 0; i < held_keys::keys_max; ++i) {
    EXPECT_FALSE(keys.full(now));
    keys.rejected({std::to_string(i), std::to_string(i)}, now);
  }
  EXPECT_TRUE(keys.full(now));
  EXPECT_FALSE(keys.full(now + 1s));
}

// Proves O3
TEST_F(held, a_clock_that_is_set_back_puts_nothing_off) {
  for (std::size_t i = 0; i < held_keys::keys_max; ++i)
    keys.rejected({std::to_string(i), std::to_string(i)}, now);
  now -= 2h;
  EXPECT_FALSE(keys.full(now));
  EXPECT_EQ(keys.waiting(now), "[]");
  EXPECT_EQ(keys.next(now, now + 1h), now + 1h);
}

TEST_F(held, what_was_taken_away_is_forgotten) {
  keys.rejected({"1", "gone"}, now);
  now += 1h;
  keys.rejected({"2", "k"}, now);
  keys.rejected({"1", "gone", 0}, now);
  EXPECT_EQ(keys.next(now, now + 1h), now + 100ms) << "its attempts are counted from one";
}

TEST_F(held, shares_that_others_own_are_dropped) {
  const table_row row{"1", "k"};
  keys.rejected(row, now);
  const std::vector<int> other{(share_of(row) + 1) % share_count};
  keys.drop_shares(other);
  EXPECT_EQ(keys.waiting(now), R"(["k\u001fk"])");
  const std::vector<int> its{share_of(row)};
  keys.drop_shares(its);
  EXPECT_EQ(keys.waiting(now), "[]");
}

TEST(table_sql, names_and_words_are_quoted) {
  EXPECT_EQ(quoted_name(R"(a"b)"), R"("a""b")");
  EXPECT_EQ(quoted_text("it's"), "'it''s'");
  EXPECT_EQ(quoted_text(R"(a\' or 1=1 --)"), R"(E'a\\'' or 1=1 --')");
  EXPECT_EQ(split_name("my.out.box").table, "out.box");
}

TEST(table_sql, the_index_to_create_holds_the_rows_that_wait) {
  auto mapping = status_table("shop.outbox");
  mapping.order_by = "created_at";
  EXPECT_EQ(index_statement(mapping),
            R"(create index concurrently on "shop"."outbox" ("created_at", "id") where )"
            R"("status" = 'PENDING')");
}

TEST(table_sql, a_mapping_without_a_state_has_to_remove_rows) {
  auto mapping = debezium_table("public.outbox");
  EXPECT_NO_THROW(check_mapping(mapping));
  mapping.after_publish = after_publish::mark;
  EXPECT_THROW(check_mapping(mapping), error);
}

}  // namespace
}  // namespace settle::outbox
