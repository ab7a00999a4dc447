// settle group as an operator meets it.
#include "settle/driver/broker.hpp"
#include "settle/sqlite.hpp"
#include "support/cli_program.hpp"

namespace settle {
namespace {

using words = std::vector<std::string>;

struct cli_group : test::cli_program {
  // Three messages of orders, of which a group that nobody reads for has read none.
  void SetUp() override {
    ASSERT_EQ(settle({"migrate"}).code, 0);
    auto broker = sqlite::open_broker(data() + "/broker.db");
    broker->subscribe({.group = "old-warehouse", .topics = {"orders"}})->leave();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(settle({"publish", "orders", "order.placed"}).code, 0);
    ASSERT_EQ(settle({"relay", "--once"}).code, 0);
  }

  bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
};

TEST_F(cli_group, is_listed_with_what_it_has_not_read_and_status_says_what_to_do) {
  const auto list = settle({"group", "list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_TRUE(has(list.out, "old-warehouse  orders       3  ")) << list.out;
  const auto object = settle_json({"group", "list"}).at(0);
  EXPECT_EQ(object.at("unread"), 3);
  EXPECT_EQ(object.at("members_alive"), 0);
  EXPECT_TRUE(object.at("oldest_unread").is_string());
  EXPECT_TRUE(has(settle({"status"}).out, "`settle group remove old-warehouse --data "));
}

TEST_F(cli_group, is_removed_only_when_that_is_confirmed) {
  const auto look = settle({"group", "remove", "old-warehouse"});
  EXPECT_EQ(look.code, 2);
  EXPECT_TRUE(has(look.out, "old-warehouse on orders: never reads 3 messages, the oldest of ")) << look.out;
  EXPECT_TRUE(has(look.err, "repeat it with --yes")) << look.err;
  EXPECT_EQ(settle_json({"group", "list"}).as_array().size(), 1u);
  const auto done = settle_unheard({"group", "remove", "old-warehouse", "--yes"});
  EXPECT_EQ(done.code, 4) << "done, although nobody can read the output";
  EXPECT_TRUE(has(done.err, "group old-warehouse was removed")) << done.err;
  EXPECT_EQ(settle({"group", "list"}).out, "no consumer groups yet\n");
  const auto again = settle({"group", "remove", "old-warehouse", "--yes"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "there is no group old-warehouse")) << again.err;
}

TEST_F(cli_group, is_reset_to_a_place_that_is_named) {
  EXPECT_EQ(settle({"group", "reset", "old-warehouse", "--yes"}).code, 2) << "where to?";
  EXPECT_EQ(settle({"group", "reset", "old-warehouse", "--to", "yesterday"}).code, 2);
  EXPECT_TRUE(has(settle({"group", "reset", "old-warehouse", "--to", "end"}).out,
                  "never reads 3 messages, the oldest of "));
  const auto ahead = settle_json({"group", "reset", "old-warehouse", "--to", "end", "--yes"});
  EXPECT_EQ(ahead.at_pointer("/topics/0/after/unread"), 0);
  EXPECT_EQ(settle_json({"group", "list"}).at(0).at("unread"), 0);
  const auto back = settle({"group", "reset", "old-warehouse", "--to", "1h", "--topic", "orders", "--yes"});
  EXPECT_EQ(back.out, "old-warehouse on orders: loses nothing; 3 messages to read from there\n") << back.err;
}

TEST_F(cli_group, with_a_live_member_stays) {
  auto broker = sqlite::open_broker(data() + "/broker.db");
  auto member = broker->subscribe({.group = "old-warehouse", .topics = {"orders"}});
  member->fetch(1);
  const auto refused = settle({"group", "remove", "old-warehouse", "--yes"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "has a member alive on orders")) << refused.err;
}

}  // namespace
}  // namespace settle
