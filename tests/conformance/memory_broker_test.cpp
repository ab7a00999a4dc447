// The brokers in memory against the broker conformance suite, and the faults that they have on request.
#include "conformance/broker_suite.hpp"
#include "settle/error.hpp"
#include "settle/testing.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/memory_log_server.hpp"
#include "support/memory_queue_server.hpp"
#include "support/quiet_log.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

template <class Server>
class memory_storage final : public broker_storage {
 public:
  std::unique_ptr<broker> open(int partitions) override {
    environment env;
    env.time = &time_;
    env.log = &log_;
    return server_.open(env, partitions);
  }
  void pass_a_heartbeat() override { time_.advance(session_timeout / 3); }
  void outlive_leases() override { time_.advance(session_timeout + 1us); }
  bool hang(bool hanging) override {
    server_.hang(hanging);
    return true;
  }

  Server& server() { return server_; }

 private:
  static constexpr duration session_timeout = 9s;
  testing::manual_time time_;
  quiet_log log_;
  Server server_{session_timeout};
};

template <class Server>
broker_driver memory_driver(const std::string& name) {
  return {.name = name, .fresh = [] { return std::make_unique<memory_storage<Server>>(); }};
}

INSTANTIATE_TEST_SUITE_P(in_memory, broker_conformance,
                         ::testing::Values(memory_driver<memory_log_server>("log"),
                                           memory_driver<memory_queue_server>("queue")),
                         broker_name);

struct memory_log : ::testing::Test {
  memory_storage<memory_log_server> storage;
  memory_log_server& server = storage.server();
  std::unique_ptr<broker> home = storage.open(1);

  std::unique_ptr<subscription> subscribe(std::function<void()> before_revoked = {}) {
    return home->subscribe({"group", {"orders"}, std::move(before_revoked)});
  }
};

struct memory_queue : ::testing::Test {
  memory_storage<memory_queue_server> storage;
  memory_queue_server& server = storage.server();
  std::unique_ptr<broker> home = storage.open(1);

  void SetUp() override { server.declare("group", {"orders"}); }
  std::unique_ptr<subscription> subscribe() { return home->subscribe({"group", {"orders"}}); }
};

TEST_F(memory_log, a_rebalance_on_request_is_announced_and_ends_every_session) {
  publish_all(*home, numbered(3));
  std::unique_ptr<subscription> member;
  int asked = 0;
  std::vector<delivery> got;
  member = subscribe([&] {
    ++asked;
    member->acknowledge(tags_of({got[0], got[1]}));
  });
  got = fetch_all(*member).deliveries;
  EXPECT_EQ(asked, 0) << "there was nothing to give up";
  server.rebalance("group");
  const auto after = member->fetch(10);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(after.revoked, (std::vector<std::uint32_t>{got[0].tag.partition}));
  ASSERT_EQ(after.assigned.size(), 1u);
  EXPECT_NE(after.assigned[0].session, got[0].tag.session);
  EXPECT_EQ(ids_of(after.deliveries), (names{got[2].content.id}));
}

TEST_F(memory_log, a_rebalance_on_request_moves_partitions_between_members) {
  home = storage.open(4);
  auto one = subscribe();
  auto two = subscribe();
  const auto deal = [&] {
    std::set<std::string> first;
    for (int round = 0; round < 3; ++round)
      for (auto* member : {one.get(), two.get()})
        for (const auto& given : member->fetch(0).assigned)
          if (member == one.get()) first.insert(given.name);
    return first;
  };
  deal();
  server.rebalance("group");
  const auto first = deal();
  server.rebalance("group");
  const auto second = deal();
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(second.size(), 2u);
  EXPECT_NE(first, second);
}

TEST_F(memory_log, an_expelled_member_moves_nothing_and_learns_it) {
  publish_all(*home, numbered(2));
  auto member = subscribe();
  const auto got = fetch_all(*member).deliveries;
  server.expel_members("group");
  member->acknowledge(tags_of(got));
  const auto after = member->fetch(10);
  EXPECT_EQ(after.revoked, (std::vector<std::uint32_t>{got[0].tag.partition}));
  EXPECT_EQ(after.assigned.size(), 1u) << "it joins again";
  EXPECT_EQ(ids_of(after.deliveries), ids_of(got));
}

// Proves C4: what a consumer's fence is for
TEST_F(memory_log, a_zombie_reads_on_and_moves_nothing_until_it_doubts) {
  publish_all(*home, numbered(2));
  auto zombie = subscribe();
  const auto got = fetch_all(*zombie).deliveries;
  server.keep_zombies();
  server.expel_members("group");
  auto heir = subscribe();
  EXPECT_EQ(fetch_all(*heir).deliveries.size(), 2u);
  publish_all(*home, {make_message(2, "key-0")});
  zombie->acknowledge(tags_of(got));
  const auto more = zombie->fetch(10);
  EXPECT_TRUE(more.revoked.empty());
  EXPECT_EQ(ids_of(more.deliveries), (names{make_message(2, "").id}));
  EXPECT_EQ(drain(*heir).size(), 1u) << "both of them have it";
  zombie->doubt(got[0].tag.partition);
  const auto after = zombie->fetch(10);
  EXPECT_TRUE(after.assigned.empty());
  EXPECT_TRUE(after.deliveries.empty());
  heir->leave();
  EXPECT_EQ(fetch_all(*zombie).deliveries.size(), 3u) << "nothing was acknowledged";
}

TEST_F(memory_log, a_lost_acknowledgement_comes_to_light_with_the_next_owner) {
  publish_all(*home, numbered(1));
  auto member = subscribe();
  const auto got = fetch_all(*member).deliveries;
  server.lose_acknowledgements(1, acknowledgement_loss::unnoticed);
  member->acknowledge(tags_of(got));
  EXPECT_GE(member->settled().at(0).through, got[0].at) << "the member believes it";
  server.rebalance("group");
  EXPECT_EQ(ids_of(fetch_all(*member).deliveries), ids_of(got));
}

TEST_F(memory_log, an_acknowledgement_that_failed_is_made_again_by_the_next_call) {
  for (const auto how : {acknowledgement_loss::refused, acknowledgement_loss::answer_lost}) {
    publish_all(*home, numbered(1));
    auto member = subscribe();
    const auto got = fetch_all(*member).deliveries;
    ASSERT_EQ(got.size(), 1u);
    server.lose_acknowledgements(1, how);
    EXPECT_EQ(code_of([&] { member->acknowledge(tags_of(got)); }), errc::destination_unavailable);
    EXPECT_LT(member->settled().at(0).through, got[0].at);
    member->fetch(0);
    EXPECT_GE(member->settled().at(0).through, got[0].at);
    member->leave();
  }
}

TEST_F(memory_log, positions_use_all_sixteen_bytes) {
  publish_all(*home, numbered(300));
  auto member = subscribe();
  for (const auto& one : fetch_all(*member).deliveries) EXPECT_EQ(one.at.bytes().size(), 16u);
}

// The server is the process that survives.
TEST_F(memory_log, what_a_killed_process_published_and_acknowledged_stays) {
  publish_all(*home, numbered(2));
  pipe_signal ready;
  child_process victim([&] {
    auto own = storage.open(1);
    publish_all(*own, {make_message(2, "key-0")});
    auto member = own->subscribe({"group", {"orders"}});
    const auto got = fetch_all(*member).deliveries;
    member->acknowledge(tags_of({got.at(0)}));
    ready.announce();
    ::pause();
    return 0;
  });
  ready.await();
  victim.kill();
  auto member = subscribe();
  EXPECT_TRUE(drain(*member).empty()) << "its session still runs";
  storage.outlive_leases();
  EXPECT_EQ(payloads_by_key(drain(*member)).at("key-0"), (names{"1", "2"}));
  EXPECT_EQ(server.stored().at(make_message(2, "").id), 1);
}

template <class Server>
struct memory_server_faults : ::testing::Test {
  memory_storage<Server> storage;
};
using servers = ::testing::Types<memory_log_server, memory_queue_server>;
struct server_names {
  template <class Server>
  static std::string GetName(int) {
    return std::is_same_v<Server, memory_log_server> ? "log" : "queue";
  }
};
TYPED_TEST_SUITE(memory_server_faults, servers, server_names);

// Proves C3
TYPED_TEST(memory_server_faults, a_server_that_is_away_refuses_every_call_and_loses_nothing) {
  auto home = this->storage.open(1);
  auto member = home->subscribe({"group", {"orders"}});
  publish_all(*home, numbered(2));
  const auto got = drain(*member);
  this->storage.server().be_away();
  const auto more = std::vector<message>{make_message(2, "key-0")};
  EXPECT_EQ(home->publishing().publish(more).at(0).status, publish_status::destination_failed);
  EXPECT_EQ(code_of([&] { home->subscribe({"other", {"orders"}}); }), errc::destination_unavailable);
  EXPECT_EQ(code_of([&] { member->acknowledge(tags_of(got)); }), errc::destination_unavailable);
  EXPECT_EQ(code_of([&] { member->fetch(1); }), errc::destination_unavailable);
  this->storage.server().be_away(false);
  publish_all(*home, more);
  EXPECT_EQ(ids_of(drain(*member)), (names{more[0].id}));
  member->leave();
  auto next = home->subscribe({"group", {"orders"}});
  EXPECT_EQ(ids_of(drain(*next)), (names{more[0].id})) << "the acknowledgement was made again";
}

TYPED_TEST(memory_server_faults, forgotten_acknowledgements_bring_everything_again) {
  auto home = this->storage.open(1);
  auto member = home->subscribe({"group", {"orders"}});
  publish_all(*home, numbered(3));
  member->acknowledge(tags_of(collect(*member, 3)));
  this->storage.server().forget_acknowledgements("group");
  EXPECT_EQ(ids_of(drain(*member)).size(), 3u);
}

TEST_F(memory_queue, a_broken_session_brings_what_was_not_acknowledged_marked_and_first) {
  publish_all(*home, numbered(3));
  auto member = subscribe();
  const auto got = member->fetch(2).deliveries;
  member->acknowledge(tags_of({got[0]}));
  server.break_sessions("group");
  member->acknowledge(tags_of({got[1]}));
  const auto after = member->fetch(10);
  EXPECT_EQ(after.revoked, (std::vector<std::uint32_t>{0}));
  ASSERT_EQ(after.deliveries.size(), 2u);
  EXPECT_EQ(after.deliveries[0].content.id, got[1].content.id);
  EXPECT_TRUE(after.deliveries[0].redelivered);
  EXPECT_FALSE(after.deliveries[1].redelivered);
  EXPECT_NE(after.deliveries[0].tag.session, got[0].tag.session);
}

TEST_F(memory_queue, a_lost_acknowledgement_brings_the_message_again_when_the_session_ends) {
  publish_all(*home, numbered(1));
  auto member = subscribe();
  server.lose_acknowledgements(1, acknowledgement_loss::unnoticed);
  member->acknowledge(tags_of(drain(*member)));
  EXPECT_TRUE(drain(*member).empty());
  server.break_sessions("group");
  EXPECT_EQ(drain(*member).size(), 1u);
}

TEST_F(memory_queue, an_acknowledgement_that_failed_is_made_again_by_the_next_call) {
  for (const auto how : {acknowledgement_loss::refused, acknowledgement_loss::answer_lost}) {
    publish_all(*home, numbered(1));
    auto member = subscribe();
    server.lose_acknowledgements(1, how);
    const auto got = drain(*member);
    EXPECT_EQ(code_of([&] { member->acknowledge(tags_of(got)); }), errc::destination_unavailable);
    member->fetch(0);
    server.break_sessions("group");
    EXPECT_TRUE(drain(*member).empty());
  }
}

TEST_F(memory_queue, copies_come_on_request) {
  publish_all(*home, numbered(2));
  auto member = subscribe();
  server.deliver_twice(1);
  const auto got = drain(*member);
  EXPECT_EQ(got.size(), 3u);
  EXPECT_EQ(id_set(got).size(), 2u);
}

TEST_F(memory_queue, messages_of_one_key_go_to_whoever_asks) {
  publish_all(*home, numbered(2));
  auto one = subscribe();
  auto two = subscribe();
  EXPECT_EQ(one->fetch(1).deliveries.size(), 1u);
  EXPECT_EQ(two->fetch(1).deliveries.size(), 1u);
}

}  // namespace
}  // namespace settle::test
