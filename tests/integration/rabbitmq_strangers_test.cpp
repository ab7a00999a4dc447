// A RabbitMQ that others use as well: their queues, their exchanges, what they have given up; and groups
// before their first consumer.
#include <gtest/gtest.h>

#include "rabbitmq/topology.hpp"
#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/driver/broker.hpp"
#include "settle/rabbitmq.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/rabbitmq_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// Somebody else's program.
class stranger {
 public:
  void declare_exchange(const std::string& name, const char* type) {
    amqp_exchange_declare_t what{};
    what.exchange = rabbitmq::as_bytes(name);
    what.type = rabbitmq::as_bytes(type);
    what.auto_delete = 1;
    at_.call(AMQP_EXCHANGE_DECLARE_METHOD, what, within_);
  }
  void declare_queue(const std::string& name, const std::string& dead_letters_to = {}) {
    rabbitmq::table arguments;
    arguments.add("x-expires", std::int64_t{60'000});
    if (!dead_letters_to.empty())
      arguments.add("x-dead-letter-exchange", std::string_view())
          .add("x-dead-letter-routing-key", std::string_view(dead_letters_to));
    amqp_queue_declare_t what{};
    what.queue = rabbitmq::as_bytes(name);
    what.arguments = arguments.get();
    at_.call(AMQP_QUEUE_DECLARE_METHOD, what, within_);
  }
  void delete_queue(const std::string& name) {
    amqp_queue_delete_t what{};
    what.queue = rabbitmq::as_bytes(name);
    at_.call(AMQP_QUEUE_DELETE_METHOD, what, within_);
  }
  void bind(const std::string& queue, const std::string& exchange, const std::string& key) {
    amqp_queue_bind_t what{};
    what.queue = rabbitmq::as_bytes(queue);
    what.exchange = rabbitmq::as_bytes(exchange);
    what.routing_key = rabbitmq::as_bytes(key);
    at_.call(AMQP_QUEUE_BIND_METHOD, what, within_);
  }
  void publish(const std::string& queue, const std::string& payload, const std::string& id = {},
               const std::string& event = "created") {
    rabbitmq::table headers;
    headers.add("event", std::string_view(event));
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_HEADERS_FLAG;
    properties.headers = headers.get();
    if (!id.empty()) {
      properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
      properties.message_id = rabbitmq::as_bytes(id);
    }
    at_.publish("", queue, properties, payload, within_);
    at_.flush();
  }
  void reject_first(const std::string& queue) {
    std::optional<rabbitmq::arrived_message> got;
    ASSERT_TRUE(eventually([&] { return (got = at_.get(queue, within_)).has_value(); }));
    at_.send(AMQP_BASIC_REJECT_METHOD, amqp_basic_reject_t{got->tag, 0});
    at_.flush();
  }
  std::optional<rabbitmq::arrived_message> get(const std::string& queue) { return at_.get(queue, within_); }
  std::int64_t ready(const std::string& queue) {
    return rabbitmq::topology(on_, {""}).look_at(queue, within_)->ready;
  }

 private:
  rabbitmq::limit within_ = rabbitmq::limit::within(60s);
  rabbitmq::connection on_{rabbitmq::parse_url(rabbitmq_url()), {}, "a stranger", within_};
  rabbitmq::channel at_{on_, within_};
};

struct rabbitmq_strangers : ::testing::Test {
  void SetUp() override {
    if (const auto missing = rabbitmq_missing(); !missing.empty()) GTEST_SKIP() << missing;
    others = std::make_unique<stranger>();
    settle::migrate(*db);
    auto tx = db->begin();
    tx.execute("create table payments(id text primary key, type text, sort text)");
    tx.commit();
  }

  std::string called(const std::string& name) const { return corner.prefix() + name; }

  // The group `bank` reads the queue `payments.in` of others as topic `payments`.
  std::unique_ptr<settle::broker> reading(message_mapping mapping = {}) const {
    rabbitmq::options with{.queues = 2, .prefix = corner.prefix(), .balance_every = 100ms};
    with.existing_queues = {{called("payments.in"), "bank", "payments", std::move(mapping)}};
    return rabbitmq::open(rabbitmq_url(), with);
  }

  static std::vector<std::string> arrived(subscription& at, std::size_t count) {
    std::vector<std::string> payloads;
    EXPECT_TRUE(eventually([&] {
      const auto got = at.fetch(100);
      std::vector<delivery_tag> tags;
      for (const auto& one : got.deliveries) {
        payloads.push_back(one.content.payload);
        tags.push_back(one.tag);
      }
      at.acknowledge(tags);
      return payloads.size() >= count;
    })) << payloads.size();
    return payloads;
  }

  void run(consumer& what, const std::function<bool()>& until) {
    EXPECT_TRUE(eventually([&] {
      while (what.run_once()) {
      }
      return until();
    }));
  }

  outcome settle(std::vector<std::string> arguments) {
    write_file(dir.file("url"), rabbitmq_url() + "\n");
    write_file(dir.file("settled.toml"),
               "[broker.main]\nurl_file = \"" + dir.file("url") + "\"\nprefix = \"" + corner.prefix() +
                   "\"\nqueues = 2\n[service.bank]\ndatabase = \"" + dir.file("bank.db") + "\"\n");
    arguments.insert(arguments.end(), {"--config", dir.file("settled.toml")});
    return program(SETTLE_CLI, std::move(arguments), dir.file("settle"), {}).end();
  }

  temp_dir dir;
  scratch_broker corner;
  std::unique_ptr<stranger> others;
  std::unique_ptr<database> db = sqlite::open(dir.file("bank.db"));
};

// Proves C2, O7
TEST_F(rabbitmq_strangers, messages_of_a_queue_of_theirs_are_applied_once_by_a_declared_mapping) {
  others->declare_queue(called("payments.in"));
  others->publish(called("payments.in"), R"({"order": 1})", "p-1");
  others->publish(called("payments.in"), R"({"order": 2})");
  others->publish(called("payments.in"), R"({"order": 1})", "p-1");
  const auto broker = reading({.id = {"{property:message-id}", "{payload:/order}-{header:event}"},
                               .source = {},
                               .type = {"{header:event}"},
                               .key = {"{payload:/order}"},
                               .subject = {"{property:routing-key}"},
                               .time = {}});
  consumer bank(*db, *broker, {.name = "bank"});
  bank.on("payments", "created", [](const message& m, transaction& tx) {
    tx.execute("insert into payments values ($1, $2, $3)", {m.id, m.type, m.extensions.at("event")});
    EXPECT_TRUE(m.subject.ends_with("payments.in")) << m.subject;
  });
  run(bank, [&] { return bank.counts().applied + bank.counts().duplicates == 3; });
  EXPECT_EQ(bank.counts().duplicates, 1);
  auto rows = db->read().execute("select id || ' ' || type || ' ' || sort from payments order by id");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][0].text(), "2-created created created");
  EXPECT_EQ(rows[1][0].text(), "p-1 created created");
  bank.leave();
  EXPECT_EQ(others->ready(called("payments.in")), 0) << "all are acknowledged";
}

// Proves C2, D1
TEST_F(rabbitmq_strangers, messages_without_an_id_are_dead_letters_that_say_so_and_none_is_lost) {
  others->declare_queue(called("payments.in"));
  for (const auto* payload : {"1", "2", "3"}) others->publish(called("payments.in"), payload);
  const auto broker = reading();
  consumer bank(*db, *broker, {.name = "bank"});
  bank.on("payments", "", [](const message&, transaction&) { ADD_FAILURE() << "it could run twice"; });
  run(bank, [&] { return bank.counts().dead_letters == 3; });
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 3u);
  EXPECT_NE(letters[0].error.find("message_id_missing"), std::string::npos) << letters[0].error;
  EXPECT_NE(letters[0].error.find("settle/message_mapping.hpp"), std::string::npos) << letters[0].error;
}

// Proves C3, O7
TEST_F(rabbitmq_strangers, a_queue_of_theirs_has_one_reader_and_the_next_takes_over) {
  others->declare_queue(called("payments.in"));
  const auto first = reading(), second = reading();
  const auto one = first->subscribe({"bank", {"payments"}});
  others->publish(called("payments.in"), "1", "p-1");
  EXPECT_EQ(arrived(*one, 1), std::vector<std::string>{"1"});
  const auto other = second->subscribe({"bank", {"payments"}});
  others->publish(called("payments.in"), "2", "p-2");
  EXPECT_EQ(arrived(*one, 1), std::vector<std::string>{"2"});
  EXPECT_TRUE(other->fetch(10).deliveries.empty());
  one->leave();
  others->publish(called("payments.in"), "3", "p-3");
  EXPECT_EQ(arrived(*other, 1), std::vector<std::string>{"3"});
}

// Proves O7
TEST_F(rabbitmq_strangers, a_queue_of_theirs_that_is_missing_is_named_and_read_again_when_it_is_back) {
  try {
    reading()->subscribe({"bank", {"payments"}});
    FAIL() << "there is no such queue";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::destination_unavailable);
    EXPECT_NE(std::string(e.what()).find("there is no queue " + called("payments.in")), std::string::npos);
  }
  others->declare_queue(called("payments.in"));
  const auto broker = reading();
  const auto at = broker->subscribe({"bank", {"payments"}});
  others->delete_queue(called("payments.in"));
  EXPECT_TRUE(eventually([&] {
    try {
      at->fetch(10);
      return false;
    } catch (const error& e) {
      return std::string(e.what()).find("has been deleted") != std::string::npos;
    }
  }));
  others->declare_queue(called("payments.in"));
  others->publish(called("payments.in"), "1", "p-1");
  EXPECT_EQ(arrived(*at, 1), std::vector<std::string>{"1"});
}

// Proves O7, O8
TEST_F(rabbitmq_strangers, events_go_to_an_exchange_of_theirs_by_the_routing_key_that_was_declared) {
  rabbitmq::options with{.prefix = corner.prefix()};
  with.existing_exchanges = {{"payments", called("bank-events"), "payment.{type}.{key}"}};
  const auto broker = rabbitmq::open(rabbitmq_url(), with);
  message m;
  m.id = "e-1";
  m.source = "/bank";
  m.type = "created";
  m.topic = "payments";
  m.key = "eu";
  m.payload = "{}";
  const auto missing = broker->publishing().publish(std::span(&m, 1));
  EXPECT_NE(missing[0].status, publish_status::confirmed);
  EXPECT_NE(missing[0].reason.find("there is no exchange " + called("bank-events")), std::string::npos)
      << missing[0].reason;
  others->declare_exchange(called("bank-events"), "topic");
  others->declare_queue(called("audit"));
  others->bind(called("audit"), called("bank-events"), "payment.*.eu");
  EXPECT_EQ(broker->publishing().publish(std::span(&m, 1))[0].status, publish_status::confirmed);
  const auto got = others->get(called("audit"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->content.message_id, "e-1");
  EXPECT_EQ(*got->content.header("cloudEvents_type"), "created");
  m.key = "us";
  EXPECT_EQ(broker->publishing().publish(std::span(&m, 1))[0].status, publish_status::topic_unavailable)
      << "no queue of theirs wants it: it is held";
}

// Proves D1
TEST_F(rabbitmq_strangers, what_they_dead_letter_is_imported_once_with_its_history) {
  others->declare_queue(called("payments.dead"));
  others->declare_queue(called("payments.work"), called("payments.dead"));
  for (const auto* id : {"p-1", "p-2"}) {
    others->publish(called("payments.work"), "{}", id);
    others->reject_first(called("payments.work"));
  }
  const std::vector<std::string> import{"dlq",        "import", called("payments.dead"),
                                        "--consumer", "bank",   "--topic",
                                        "payments",   "--type", "{header:event}"};
  ASSERT_TRUE(eventually([&] { return others->ready(called("payments.dead")) == 2; }));
  const auto done = settle(import);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "2 letters imported\n");
  EXPECT_EQ(settle(import).out, "0 letters imported\n");
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_EQ(letters[0].what.id, "p-1");
  EXPECT_EQ(letters[0].what.type, "created");
  EXPECT_EQ(letters[0].consumer, "bank");
  EXPECT_EQ(letters[0].reason, dead_letter_reason::imported);
  EXPECT_EQ(letters[0].attempts, 1);
  ASSERT_EQ(letters[0].history.size(), 1u);
  EXPECT_NE(letters[0].error.find("in queue " + called("payments.work") + " it was rejected by its reader"),
            std::string::npos)
      << letters[0].error;
  others->publish(called("payments.dead"), "{}", "p-1");
  EXPECT_EQ(settle(import).out, "0 letters imported, 1 had been before\n");
}

// Proves O7
TEST_F(rabbitmq_strangers, a_group_is_created_before_its_first_consumer_and_removed_when_it_is_retired) {
  const auto made = settle({"group", "create", "warehouse", "--topic", "orders"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "group warehouse listens to orders\n");
  EXPECT_EQ(settle({"group", "create", "warehouse", "--topic", "orders"}).code, 0) << "once more";
  const auto other = settle({"group", "create", "warehouse", "--topic", "orders", "--queues", "3"});
  EXPECT_EQ(other.code, 2) << other.out;
  EXPECT_NE(other.err.find("another number of queues"), std::string::npos) << other.err;

  const auto broker = rabbitmq::open(rabbitmq_url(), {.queues = 2, .prefix = corner.prefix()});
  message m;
  m.id = "e-1";
  m.source = "/orders";
  m.type = "placed";
  m.topic = "orders";
  m.payload = "1";
  ASSERT_EQ(broker->publishing().publish(std::span(&m, 1))[0].status, publish_status::confirmed);
  const auto list = settle({"group", "list"});
  EXPECT_NE(list.out.find("warehouse"), std::string::npos) << list.out << list.err;

  const auto look = settle({"group", "remove", "warehouse"});
  EXPECT_EQ(look.code, 2);
  EXPECT_EQ(look.out, "warehouse on orders: never reads 1 message\n");
  {
    const auto at = broker->subscribe({"warehouse", {"orders"}});
    EXPECT_EQ(arrived(*at, 1), std::vector<std::string>{"1"});
    EXPECT_NE(settle({"group", "remove", "warehouse", "--yes"}).err.find("that are alive"),
              std::string::npos);
    at->leave();
  }
  EXPECT_EQ(settle({"group", "remove", "warehouse", "--yes"}).code, 0);
  EXPECT_EQ(settle({"group", "list"}).out, "no consumer groups yet\n");
  EXPECT_EQ(broker->publishing().publish(std::span(&m, 1))[0].status, publish_status::topic_unavailable);
  EXPECT_EQ(settle({"group", "create", "warehouse", "--topic", "orders"}).code, 0) << "and made anew";
}

}  // namespace
}  // namespace settle::test
