// The embedded broker against the broker conformance suite, and what is its own.
#include <optional>

#include "conformance/broker_suite.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

class embedded_storage final : public broker_storage {
 public:
  std::unique_ptr<broker> open(int partitions) override {
    environment env;
    env.time = &time_;
    env.log = &log_;
    return sqlite::open_broker(
        path(), {.env = env, .busy_timeout = busy_timeout, .partitions = partitions, .lease_ttl = lease_ttl});
  }
  void pass_a_heartbeat() override { time_.advance(lease_ttl / 3); }
  void outlive_leases() override { time_.advance(lease_ttl + 1us); }
  // Somebody else has the write lock and does not let go. Calls wait for busy_timeout at most.
  bool hang(bool hanging) override {
    held_.reset();
    if (!hanging) return true;
    other_ = sqlite::open(path());
    held_.emplace(other_->begin());
    return true;
  }

  std::string path() const { return dir_.file("broker.db"); }

 private:
  static constexpr duration lease_ttl = 9s;
  static constexpr duration busy_timeout = 3s;
  temp_dir dir_;
  testing::manual_time time_;
  quiet_log log_;
  std::unique_ptr<database> other_;
  std::optional<owned_transaction> held_;
};

broker_driver embedded_driver() {
  return {.name = "sqlite", .fresh = [] { return std::make_unique<embedded_storage>(); }};
}

INSTANTIATE_TEST_SUITE_P(conformance, broker_conformance, ::testing::Values(embedded_driver()), broker_name);

TEST(embedded_broker, the_number_of_partitions_is_fixed_by_whoever_uses_a_topic_first) {
  embedded_storage storage;
  auto two = storage.open(2);
  publish_all(*two, {make_message(1, "a")});
  auto eight = storage.open(8);
  std::vector<message> batch;
  for (int i = 0; i < 100; ++i) batch.push_back(make_message(i, "key-" + std::to_string(i)));
  publish_all(*eight, batch);
  auto member = eight->subscribe({"group", {"orders"}});
  std::set<std::uint32_t> partitions;
  for (const auto& one : drain(*member)) partitions.insert(one.tag.partition);
  EXPECT_EQ(partitions.size(), 2u);
}

TEST(embedded_broker, options_out_of_bounds_are_refused) {
  temp_dir dir;
  const auto open = [&](int partitions, duration lease_ttl) {
    return code_of(
        [&] { sqlite::open_broker(dir.file("b.db"), {.partitions = partitions, .lease_ttl = lease_ttl}); });
  };
  EXPECT_EQ(open(0, 10s), errc::invalid_argument);
  EXPECT_EQ(open(1025, 10s), errc::invalid_argument);
  EXPECT_EQ(open(8, 49ms), errc::invalid_argument);
  EXPECT_EQ(open(1024, 50ms), std::nullopt);
}

// Proves O4: what publisher::publish promises to the relay
TEST(embedded_broker, behind_a_rejected_message_no_later_one_of_its_key_is_confirmed) {
  embedded_storage storage;
  auto broker = storage.open(4);
  auto bad = make_message(1, "a");
  bad.id = "an id with a control character \x01";
  const std::vector<message> batch{bad, make_message(2, "a"), make_message(3, "b")};
  const auto results = broker->publishing().publish(batch);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status, publish_status::message_rejected);
  EXPECT_NE(results[1].status, publish_status::confirmed);
  EXPECT_EQ(results[2].status, publish_status::confirmed);
  auto member = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(ids_of(drain(*member)), (std::vector<std::string>{make_message(3, "b").id}));
}

TEST(embedded_broker, a_message_that_could_never_be_read_back_is_rejected_instead_of_blocking_its_partition) {
  embedded_storage storage;
  auto broker = storage.open(1);
  auto bad = make_message(1, "a");
  bad.extensions["note"] = "\xff not UTF-8";
  const auto results = broker->publishing().publish(std::vector<message>{bad});
  publish_all(*broker, {make_message(2, "b")});
  auto member = broker->subscribe({"group", {"orders"}});
  std::vector<delivery> got;
  EXPECT_EQ(code_of([&] { got = drain(*member); }), std::nullopt);
  EXPECT_EQ(results[0].status, publish_status::message_rejected);
  EXPECT_EQ(ids_of(got), (std::vector<std::string>{make_message(2, "b").id}));
}

TEST(embedded_broker, a_broker_that_cannot_write_now_blames_itself_and_not_the_message) {
  temp_dir dir;
  auto broker = sqlite::open_broker(dir.file("b.db"), {.busy_timeout = 50ms});
  auto file = sqlite::open(dir.file("b.db"));
  auto holder = file->begin();
  const auto results = broker->publishing().publish(std::vector<message>{make_message(1, "a")});
  EXPECT_EQ(results.at(0).status, publish_status::destination_failed);
  EXPECT_NE(results.at(0).reason.find("store_busy"), std::string::npos) << results.at(0).reason;
}

TEST(embedded_broker, another_process_can_publish_into_the_same_file) {
  embedded_storage storage;
  auto broker = storage.open(4);
  auto member = broker->subscribe({"group", {"orders"}});
  child_process publisher([&] {
    auto own = storage.open(4);
    const std::vector<message> batch{make_message(1, "a"), make_message(2, "a")};
    for (const auto& result : own->publishing().publish(batch))
      if (result.status != publish_status::confirmed) return 1;
    return 0;
  });
  EXPECT_EQ(collect(*member, 2).size(), 2u);
  EXPECT_EQ(publisher.wait(), 0);
}

// Proves C1: what was delivered to a process that is killed is delivered again
TEST(embedded_broker, what_a_killed_process_had_fetched_goes_to_another_one) {
  embedded_storage storage;
  auto broker = storage.open(4);
  publish_all(*broker, {make_message(1, "a"), make_message(2, "b"), make_message(3, "c")});
  pipe_signal fetched_all;
  child_process victim([&] {
    auto own = storage.open(4);
    auto member = own->subscribe({"group", {"orders"}});
    if (drain(*member).size() != 3) return 1;
    fetched_all.announce();
    ::pause();
    return 0;
  });
  fetched_all.await();
  auto member = broker->subscribe({"group", {"orders"}});
  EXPECT_TRUE(drain(*member).empty()) << "the lease still runs";
  EXPECT_EQ(victim.kill(), -SIGKILL);
  storage.outlive_leases();
  EXPECT_EQ(drain(*member).size(), 3u);
}

}  // namespace
}  // namespace settle::test
