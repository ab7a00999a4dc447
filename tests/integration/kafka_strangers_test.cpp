// A Kafka that others use as well: their topics, and messages that are no CloudEvents.
#include <gtest/gtest.h>

#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/driver/broker.hpp"
#include "settle/kafka.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/expect_error.hpp"
#include "support/kafka_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

struct kafka_strangers : ::testing::Test {
  void SetUp() override {
    if (const auto missing = kafka_missing(); !missing.empty()) GTEST_SKIP() << missing;
    settle::migrate(*db);
    auto tx = db->begin();
    tx.execute("create table payments(id text primary key, type text, key text, sort text)");
    tx.commit();
  }

  // Their topic `payments.in`, which consumers call `payments`.
  std::unique_ptr<settle::broker> reading(message_mapping mapping = {}) const {
    kafka::options with{.prefix = "ours_" + corner.prefix()};
    with.existing_topics = {{corner.prefix() + "payments.in", "payments", std::move(mapping)}};
    return kafka::open(kafka_url(), with);
  }

  void run(consumer& what, const std::function<bool()>& until) {
    EXPECT_TRUE(eventually([&] {
      while (what.run_once()) {
      }
      return until();
    }));
  }

  std::vector<std::string> rows() const {
    const auto found =
        db->read().execute("select id || ' ' || type || ' ' || key || ' ' || sort from payments order by id");
    std::vector<std::string> all;
    for (std::size_t i = 0; i < found.size(); ++i) all.push_back(found[i][0].text());
    return all;
  }
  void note(const message& m, transaction& tx) const {
    const auto sort = m.extensions.find("sort");
    tx.execute("insert into payments values ($1, $2, $3, $4)",
               {m.id, m.type, m.key, sort == m.extensions.end() ? std::string("-") : sort->second});
  }

  temp_dir dir;
  kafka_corner corner;
  kafka_corner ours{kafka_url(), "ours_" + corner.prefix()};
  std::unique_ptr<database> db = sqlite::open(dir.file("bank.db"));
};

// Proves C2, O7
TEST_F(kafka_strangers, messages_of_a_topic_of_theirs_are_applied_once_by_a_declared_mapping) {
  corner.create_topic("payments.in", 2);
  corner.produce("payments.in", "k", R"({"order": 1})", {{"payment-id", "p-1"}, {"Sort", "a"}});
  corner.produce("payments.in", "k", R"({"order": 2})", {{"event", "created"}});
  corner.produce("payments.in", "k", R"({"order": 1})", {{"payment-id", "p-1"}, {"Sort", "a"}});
  const auto broker = reading({.id = {"{header:payment-id}", "{payload:/order}-{header:event}"},
                               .source = {"{property:topic}"},
                               .type = {"{header:event}", "paid"},
                               .key = {"{payload:/order}"},
                               .subject = {},
                               .time = {"{property:timestamp}"}});
  consumer bank(*db, *broker, {.name = "bank"});
  bank.on("payments", "", [&](const message& m, transaction& tx) {
    EXPECT_EQ(m.topic, "payments");
    EXPECT_EQ(m.source, corner.prefix() + "payments.in");
    EXPECT_NE(m.time, timestamp{});
    note(m, tx);
  });
  run(bank, [&] { return bank.counts().applied + bank.counts().duplicates == 3; });
  EXPECT_EQ(bank.counts().duplicates, 1);
  EXPECT_EQ(rows(), (std::vector<std::string>{"2-created created 2 -", "p-1 paid 1 a"}));
  bank.leave();
}

// Proves C2, O8
TEST_F(kafka_strangers, what_debezium_captures_of_an_outbox_is_applied_once) {
  corner.create_topic("payments.in", 2);
  const std::vector<std::pair<std::string, std::string>> headers{{"id", "9f1c"}, {"eventType", "paid"}};
  for (int i = 0; i < 2; ++i) corner.produce("payments.in", "order-7", R"({"cents":5})", headers);
  const auto broker = reading(kafka::debezium_outbox());
  consumer bank(*db, *broker, {.name = "bank"});
  bank.on("payments", "paid", [&](const message& m, transaction& tx) { note(m, tx); });
  run(bank, [&] { return bank.counts().applied + bank.counts().duplicates == 2; });
  EXPECT_EQ(rows(), std::vector<std::string>{"9f1c paid order-7 -"});
  bank.leave();
}

// Proves C2, D1
TEST_F(kafka_strangers, messages_without_an_id_are_dead_letters_that_say_what_is_missing) {
  corner.create_topic("payments.in", 1);
  for (const auto* payload : {"1", "2", "3"}) corner.produce("payments.in", "k", payload);
  const auto broker = reading();
  consumer bank(*db, *broker, {.name = "bank"});
  bank.on("payments", "", [](const message&, transaction&) { ADD_FAILURE() << "it could run twice"; });
  run(bank, [&] { return bank.counts().dead_letters == 3; });
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 3u);
  EXPECT_NE(letters[0].error.find("message_id_missing"), std::string::npos) << letters[0].error;
  EXPECT_NE(letters[0].error.find("settle/message_mapping.hpp"), std::string::npos) << letters[0].error;
  bank.leave();
}

// Proves O7
TEST_F(kafka_strangers, a_topic_of_theirs_that_is_missing_is_named_and_never_made) {
  const auto broker = reading();
  try {
    broker->subscribe({"bank", {"payments"}});
    FAIL() << "there is no such topic";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::destination_unavailable);
    EXPECT_NE(std::string(e.what()).find("no topic " + corner.prefix() + "payments.in"), std::string::npos)
        << e.what();
  }
  message m;
  m.id = "e-1";
  m.source = "/bank";
  m.type = "paid";
  m.topic = "payments";
  m.payload = "{}";
  EXPECT_EQ(broker->publishing().publish(std::span(&m, 1))[0].status, publish_status::topic_unavailable);
  EXPECT_FALSE(corner.has_topic("payments.in"));
  corner.create_topic("payments.in", 1);
  EXPECT_EQ(broker->publishing().publish(std::span(&m, 1))[0].status, publish_status::confirmed);
  const auto at = broker->subscribe({"bank", {"payments"}});
  std::string got;
  EXPECT_TRUE(eventually([&] {
    for (const auto& one : at->fetch(10).deliveries) got = one.content.id;
    return !got.empty();
  }));
  EXPECT_EQ(got, "e-1");
  at->leave();
}

}  // namespace
}  // namespace settle::test
