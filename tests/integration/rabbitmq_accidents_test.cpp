// What people and settings do to a RabbitMQ that is in use: a size limit, a deleted queue or exchange, a
// server that is tired of waiting for acknowledgements. Nothing is lost in silence, and nobody else is
// harmed.
#include <chrono>

#include "support/rabbitmq_load.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

struct rabbitmq_accident : rabbitmq_under_load {};

message message_to(const std::string& topic, std::string payload) {
  message made;
  made.id = "1";
  made.topic = topic;
  made.source = "test";
  made.type = "order.placed";
  made.payload = std::move(payload);
  return made;
}

// Proves O3, O7
TEST_F(rabbitmq_of_its_own, with_a_size_limit_fails_the_large_event_alone_and_its_key_goes_on) {
  start("-rabbit max_message_size 2000");
  survive_an_event_of(3000, "the server takes 2000 (max_message_size)");
}

// Proves O7: a user of a virtual host who may touch what begins with our prefix, and nothing else
TEST_F(rabbitmq_of_its_own, serves_a_user_of_a_virtual_host_who_may_do_just_enough) {
  start();
  server->command("rabbitmqctl add_vhost shop");
  server->command("rabbitmqctl add_user clerk secret");
  const std::string of_clerk = "amqp://clerk:secret@127.0.0.1:" + std::to_string(port_of(url)) + "/shop";
  const std::vector one{message_to("orders", "x")};
  const auto publish_to = [&](const std::string& where) {
    return rabbitmq::open(where, broker_options({}))->publishing().publish(one)[0];
  };
  EXPECT_NE(publish_to(of_clerk).reason.find("access to vhost 'shop' refused"), std::string::npos);
  server->command("rabbitmqctl set_permissions -p shop clerk '^nothing' '^nothing' '^nothing'");
  const auto refused = publish_to(of_clerk);
  EXPECT_EQ(refused.status, publish_status::topic_unavailable);
  EXPECT_NE(refused.reason.find("needs the permissions configure, write and read"), std::string::npos)
      << refused.reason;
  const auto ours = "^" + corner.prefix();
  server->command("rabbitmqctl set_permissions -p shop clerk '" + ours + "' '" + ours + "|^amq.default$' '" +
                  ours + "'");
  const auto broker = rabbitmq::open(of_clerk, broker_options({}));
  broker->create_group("warehouse", {"orders"});
  const auto stored = broker->publishing().publish(one)[0];
  EXPECT_EQ(stored.status, publish_status::confirmed) << stored.reason;
  EXPECT_EQ(received(*broker, "warehouse").size(), 1u);
  EXPECT_EQ(publish_to(url).status, publish_status::topic_unavailable)
      << "another virtual host has the group";
}

TEST_F(rabbitmq_of_its_own, whose_size_limit_was_raised_takes_what_it_has_refused) {
  start("-rabbit max_message_size 2000");
  create_group("warehouse");
  const auto broker = rabbitmq::open(url, broker_options({}));
  const std::vector large{message_to("orders", std::string(3000, 'x'))};
  EXPECT_EQ(broker->publishing().publish(large)[0].status, publish_status::message_rejected);
  server->set_rabbitmq("-rabbit max_message_size 4000");
  server->command("restart rabbitmq");
  publish_result last;
  await([&] {
    last = broker->publishing().publish(large)[0];
    return last.status != publish_status::destination_failed;
  });
  EXPECT_EQ(last.status, publish_status::confirmed) << last.reason;
}

// Proves C1, C3, O3, O4: a queue that was empty when somebody deleted it
TEST_F(rabbitmq_accident, of_a_deleted_queue_is_told_and_its_events_wait_until_the_group_is_made_anew) {
  create_group("warehouse");
  running system(*this);
  let_it_drain(system);
  delete_queue(queue_of(customer_of(0)));
  system.relaying.emplace(system.world.relay());
  auto& log = system.world.log();
  await([&] { return log.count("topic_unavailable") > 0 && log.count("consumer_paused") > 0; });
  EXPECT_GT(log.count("queue_lost"), 0u);
  const auto stands_at = shipped(system.world);
  std::this_thread::sleep_for(2s);
  EXPECT_EQ(shipped(system.world), stands_at) << "it has been made anew behind everybody's back";
  delete_queue(names().mark("warehouse", "orders"));
  system.finish();
  expect_unharmed(system.world, system.load.placed, [](const auto& report) { return report.clean(); });
}

// Proves V2: what went with a queue is lost to its group, and the checker knows how much
TEST_F(rabbitmq_accident, of_a_deleted_queue_with_messages_is_told_by_the_checker) {
  create_group("warehouse");
  running system(*this);
  const auto queue = queue_of(customer_of(0));
  let_it_drain(system);
  system.consuming.reset();
  system.world.consumer().leave();
  system.relaying.emplace(system.world.relay());
  await([&] { return ready_in(queue) > 20; });
  system.relaying.reset();
  const auto gone = ready_in(queue);
  delete_queue(queue);
  delete_queue(names().mark("warehouse", "orders"));
  system.relaying.emplace(system.world.relay());
  system.consuming.emplace(system.world.consumer());
  system.finish(gone);
  const auto report = system.world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.applied, system.load.placed - gone);
  EXPECT_EQ(report.pending, gone);
}

// Proves C1, O3, O4: for every group, also for one whose consumers are away
TEST_F(rabbitmq_accident, of_a_deleted_exchange_pauses_until_its_groups_are_bound_to_a_new_one) {
  create_group("warehouse");
  create_group("auditor");
  running system(*this);
  for (int i = 0; i < 3; ++i) {
    const auto before = complaints(system.world);
    delete_exchange(names().exchange("orders"));
    await([&] { return complaints(system.world) > before; });
    const auto placed = system.load.placed.load();
    await([&] { return shipped(system.world) > placed; });
  }
  system.finish();
  expect_unharmed(system.world, system.load.placed, [](const auto& report) { return report.clean(); });
  std::size_t kept = 0;
  for (const auto& [key, orders] : received(*rabbitmq::open(url, broker_options({})), "auditor")) {
    EXPECT_TRUE(std::ranges::is_sorted(orders)) << "out of their order: " << key;
    kept += orders.size();
  }
  EXPECT_EQ(kept, static_cast<std::size_t>(system.load.placed)) << "lost to the auditor";
}

TEST_F(rabbitmq_accident, of_a_deleted_exchange_of_dead_letters_stops_no_dead_letter) {
  const auto broker = rabbitmq::open(url, broker_options({}));
  const std::vector letter{message_to("orders.dlq", "x")};
  EXPECT_EQ(broker->publishing().publish(letter)[0].status, publish_status::confirmed);
  delete_exchange(names().exchange("orders.dlq"));
  EXPECT_EQ(broker->publishing().publish(letter)[0].status, publish_status::destination_failed);
  const auto last = broker->publishing().publish(letter)[0];
  EXPECT_EQ(last.status, publish_status::confirmed) << last.reason;
  EXPECT_EQ(ready_in(names().exchange("orders.dlq")), 2);
}

TEST_F(rabbitmq_accident, of_a_topic_that_cannot_be_made_again_holds_up_no_other) {
  create_group("warehouse");
  const auto broker = rabbitmq::open(url, broker_options({}));
  const std::vector both{message_to("orders", "x"), message_to("orders.dlq", "x")};
  for (const auto& result : broker->publishing().publish(both))
    EXPECT_EQ(result.status, publish_status::confirmed) << result.reason;
  const auto queue = names().queue("warehouse", "orders", 0);
  delete_exchange(names().exchange("orders"));
  delete_queue(queue);
  broker->publishing().publish(both);  // notices it
  const auto results = broker->publishing().publish(both);
  EXPECT_EQ(results[0].status, publish_status::topic_unavailable);
  EXPECT_NE(results[0].reason.find(queue), std::string::npos) << results[0].reason;
  EXPECT_EQ(results[1].status, publish_status::confirmed) << results[1].reason;
}

// Proves C1, C3: who waits for something else acknowledges nothing meanwhile
TEST_F(rabbitmq_of_its_own, that_is_tired_of_a_paused_consumer_delivers_again_and_charges_nobody) {
  start("-rabbit consumer_timeout 2000 -rabbit channel_tick_interval 500");
  survive([&](order_world& world) {
    world.outage = true;
    await([&] { return world.log().count("queue_lost") > 0; });
    world.outage = false;
  });
}

}  // namespace
}  // namespace settle::test
