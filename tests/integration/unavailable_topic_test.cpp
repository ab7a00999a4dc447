// A topic that nobody at the broker takes.
#include "settle/outbox.hpp"
#include "support/held_events_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct unavailable_topic : test::held_events_world {};

// Proves O3, O4, O7
TEST_P(unavailable_topic, holds_its_events_uncharged_and_nobody_elses) {
  const auto emit_on = [&](const std::string& topic, const std::string& key, const std::string& payload) {
    auto tx = db->begin();
    publish(tx, event{.topic = topic, .type = "e", .key = key, .payload = payload});
    tx.commit();
  };
  relay r(*db, destination);
  destination.refuse = [](const message& m) {
    return publish_result{m.topic == "lonely" ? publish_status::topic_unavailable : publish_status::confirmed,
                          "nobody listens"};
  };
  for (const auto* payload : {"1", "2"}) emit_on("lonely", "k", payload);
  emit_on("lonely", "", "without a key");
  emit_on("t", "k", "x");
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"x"}));
  EXPECT_EQ(held(), 3);
  EXPECT_EQ(log.count("topic_unavailable"), 1u) << "once for the topic";
  emit_on("lonely", "k", "3");
  emit_on("t", "k", "y");
  run_for(r, 90s, 1s);
  EXPECT_EQ(destination.payloads(), (names{"x", "y"}));
  EXPECT_EQ(log.count("relay_paused"), 0u);
  EXPECT_EQ(log.count("topic_unavailable"), 2u) << "and once a minute";
  EXPECT_TRUE(failed_events(*db).empty());
  EXPECT_EQ(db->read().execute("select max(attempts) from " + table("outbox_held"))[0][0].integer(), 0);
  destination.refuse = nullptr;
  destination.seen.clear();
  run_for(r, 10s, 1s);
  names of_key;
  for (const auto& m : destination.seen)
    if (m.key == "k") of_key.push_back(m.payload);
  EXPECT_EQ(of_key, (names{"1", "2", "3"}));
  EXPECT_EQ(destination.seen.size(), 4u);
  EXPECT_EQ(held(), 0);
}

INSTANTIATE_TEST_SUITE_P(databases, unavailable_topic, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
