// Groups of the embedded broker that nobody reads for: what they may stop, and how an operator lets them go.
#include <gtest/gtest.h>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "sqlite/groups.hpp"
#include "sqlite/room.hpp"
#include "support/expect_error.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::code_of;

struct broker_groups : ::testing::Test {
  static constexpr std::int64_t bytes_max = 1024 * 1024;
  static constexpr duration lease_ttl = 9s;

  broker_groups() {
    home = open();
    file = sqlite::open(dir.file("broker.db"), {.env = env});
  }

  std::unique_ptr<broker> open() {
    return sqlite::open_broker(
        dir.file("broker.db"),
        {.env = env, .partitions = 2, .lease_ttl = lease_ttl, .keep = 0s, .bytes_max = bytes_max});
  }

  message made(const std::string& topic, std::size_t bytes = 1) {
    message m;
    m.id = std::to_string(++made_);
    m.topic = topic;
    m.key = "key " + m.id;
    m.payload = std::string(bytes, 'x');
    return m;
  }

  std::vector<publish_result> send(const std::vector<message>& batch) {
    return home->publishing().publish(batch);
  }
  publish_result send(const std::string& topic, std::size_t bytes = 1) {
    const auto m = made(topic, bytes);
    return home->publishing().publish({&m, 1}).at(0);
  }

  // Reads everything, acknowledges it and leaves.
  std::size_t read_all(const std::string& group, const std::string& topic) {
    auto member = home->subscribe({.group = group, .topics = {topic}});
    std::size_t count = 0;
    for (auto got = member->fetch(100); !got.deliveries.empty(); got = member->fetch(100)) {
      std::vector<delivery_tag> tags;
      for (const auto& one : got.deliveries) tags.push_back(one.tag);
      member->acknowledge(tags);
      count += tags.size();
    }
    member->leave();
    return count;
  }

  std::int64_t stored(const std::string& topic) {
    return file->read()
        .execute(
            "select count(*) from broker_messages m join broker_topics t using (topic) where t.name = $1",
            {topic})[0][0]
        .integer();
  }

  // Until nothing of this topic is taken any more; what the last one was refused with.
  publish_result fill(const std::string& topic) {
    publish_result last;
    for (int i = 0; i < 200; ++i) {
      last = send(topic, 20'000);
      if (last.status != publish_status::confirmed) break;
    }
    return last;
  }

  test::temp_dir dir;
  testing::manual_time time;
  test::quiet_log log;
  environment env{.time = &time, .log = &log};
  int made_ = 0;
  std::unique_ptr<broker> home;
  std::unique_ptr<database> file;
};

TEST_F(broker_groups, of_which_no_member_is_left_stop_their_own_topics_and_no_others) {
  read_all("retired", "orders");  // it has subscribed, and never comes again
  read_all("news-desk", "news");
  const auto refused = fill("orders");
  EXPECT_EQ(refused.status, publish_status::destination_failed);
  EXPECT_NE(refused.reason.find("group retired has messages of orders to read and no member"),
            std::string::npos)
      << refused.reason;
  EXPECT_NE(refused.reason.find("settle group remove"), std::string::npos) << refused.reason;
  for (int i = 0; i < 200; ++i) {  // more than there is room for: they are read and go
    ASSERT_EQ(send("news", 20'000).status, publish_status::confirmed) << i;
    ASSERT_EQ(read_all("news-desk", "news"), 1u);
    time.advance(1s);
  }
  EXPECT_EQ(send("orders").status, publish_status::destination_failed);
  sqlite::remove_group(*file, {.group = "retired"});
  time.advance(1s);
  EXPECT_EQ(send("orders").status, publish_status::confirmed);
}

TEST_F(broker_groups, stop_a_batch_where_their_first_message_is_so_that_no_copies_pile_up) {
  read_all("retired", "orders");
  read_all("news-desk", "news");
  fill("orders");
  const auto before = stored("news");
  const auto results = send({made("news"), made("orders"), made("news")});
  EXPECT_EQ(results.at(0).status, publish_status::confirmed);
  EXPECT_EQ(results.at(1).status, publish_status::destination_failed);
  EXPECT_EQ(results.at(2).status, publish_status::destination_failed)
      << "a relay sends it again with the second";
  EXPECT_EQ(stored("news"), before + 1);
}

TEST_F(broker_groups, that_are_only_slow_stop_nobody_before_the_broker_is_full) {
  auto slow = home->subscribe({.group = "slow", .topics = {"orders"}});
  slow->fetch(1);
  auto last = fill("orders");
  ASSERT_EQ(last.status, publish_status::destination_failed);
  EXPECT_EQ(last.reason.find("no member"), std::string::npos) << last.reason;
  auto tx = file->read();
  EXPECT_TRUE(sqlite::read_room(tx, bytes_max).is_full());
}

TEST_F(broker_groups, that_have_filled_the_broker_leave_room_at_once_when_they_are_removed) {
  auto slow = home->subscribe({.group = "slow", .topics = {"orders"}});
  slow->fetch(1);
  ASSERT_EQ(fill("orders").status, publish_status::destination_failed);
  time.advance(lease_ttl + 1us);
  sqlite::remove_group(*file, {.group = "slow"});
  EXPECT_EQ(send("news").status, publish_status::confirmed) << "nobody else was there to let anything expire";
}

TEST_F(broker_groups, when_one_is_removed_relays_go_on) {
  const auto shop = sqlite::open(dir.file("shop.db"), {.env = env});
  migrate(*shop);
  read_all("retired", "orders");
  fill("orders");
  auto tx = shop->begin();
  publish(tx, event{.topic = "orders", .type = "order.placed", .key = "k", .payload = "x"});
  tx.commit();
  relay r(*shop, home->publishing());
  for (int i = 0; i < 5; ++i) r.run_once();
  const auto before = stored("orders");
  sqlite::remove_group(*file, {.group = "retired"});
  time.advance(1min);
  while (r.run_once()) {
  }
  EXPECT_LT(stored("orders"), before) << "what only the group has kept went";
  EXPECT_EQ(file->read()
                .execute("select count(*) from broker_messages where event_type = 'order.placed'")[0][0]
                .integer(),
            1);
}

TEST_F(broker_groups, with_a_live_member_are_neither_removed_nor_reset) {
  auto member = home->subscribe({.group = "warehouse", .topics = {"orders"}});
  member->fetch(1);
  EXPECT_EQ(code_of([&] { sqlite::remove_group(*file, {.group = "warehouse"}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { sqlite::reset_group(*file, {.group = "warehouse"}, timestamp::max()); }),
            errc::invalid_argument);
  time.advance(lease_ttl + 1us);
  EXPECT_EQ(sqlite::remove_group(*file, {.group = "warehouse"}).size(), 1u) << "it was killed";
  EXPECT_EQ(code_of([&] { sqlite::remove_group(*file, {.group = "warehouse"}); }), errc::invalid_argument)
      << "there is none";
}

// What it fetched before means nothing any more.
TEST_F(broker_groups, that_come_back_after_they_were_removed_have_new_sessions_and_keep_their_messages) {
  send("orders");
  auto sleeper = home->subscribe({.group = "warehouse", .topics = {"orders"}});
  const auto first = sleeper->fetch(10).deliveries.at(0);
  time.advance(lease_ttl + 1us);
  sqlite::remove_group(*file, {.group = "warehouse"});
  sleeper->acknowledge(std::vector{first.tag});
  EXPECT_EQ(sqlite::read_groups(*file).size(), 0u) << "its acknowledgement changes nothing";
  const auto again = sleeper->fetch(10);
  ASSERT_EQ(sqlite::read_groups(*file).size(), 1u) << "whoever reads is registered";
  auto all = again.deliveries;
  for (int i = 0; i < 3 && all.empty(); ++i) all = sleeper->fetch(10).deliveries;
  ASSERT_EQ(all.size(), 1u) << "as a new group it begins with the oldest";
  EXPECT_GT(all[0].tag.session, first.tag.session);
}

TEST_F(broker_groups, are_set_to_the_start_the_end_or_a_time) {
  read_all("warehouse", "nothing");  // another topic of the same group
  read_all("warehouse", "orders");   // from now on they are kept
  for (int i = 0; i < 4; ++i) {
    send("orders");
    time.advance(1h);
  }
  const auto now = time.now();
  const auto look = sqlite::reset_group(*file, {.group = "warehouse", .topic = "orders", .only_look = true},
                                        timestamp::max());
  ASSERT_EQ(look.size(), 1u);
  EXPECT_EQ(look[0].before.unread, 4);
  EXPECT_EQ(look[0].after.unread, 0);
  EXPECT_EQ(look[0].before.oldest, now - 4h);
  EXPECT_EQ(sqlite::read_groups(*file).at(1).unread, 4) << "it only looked";
  const auto reset = [&](timestamp to) {
    sqlite::reset_group(*file, {.group = "warehouse", .topic = "orders"}, to);
    return sqlite::read_groups(*file).at(1).unread;
  };
  EXPECT_EQ(reset(now - 2h), 2);
  EXPECT_EQ(reset(timestamp::min()), 4);
  EXPECT_EQ(reset(timestamp::max()), 0);
  send("orders");
  EXPECT_EQ(read_all("warehouse", "orders"), 1u) << "the next one that came";
}

}  // namespace
}  // namespace settle
