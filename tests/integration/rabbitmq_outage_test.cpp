// What happens to a RabbitMQ under load: its line is cut, it is killed, it runs out of memory, a consumer
// sleeps. Nothing is lost, doubled or reordered, and nobody is charged.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "settle/driver/broker.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/error.hpp"
#include "settle/rabbitmq.hpp"
#include "support/child_process.hpp"
#include "support/order_world.hpp"
#include "support/postgres_fixture.hpp"
#include "support/producers.hpp"
#include "support/rabbitmq_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

struct rabbitmq_outage : ::testing::Test {
  void SetUp() override {
    if (const auto missing = rabbitmq_missing(); !missing.empty()) GTEST_SKIP() << missing;
    url = rabbitmq_url();
  }

  rabbitmq::options broker_options(const environment& env) const {
    return {.env = env,
            .connect_timeout = 2s,
            .heartbeat = 1s,
            .queues = 2,
            .prefix = corner.prefix(),
            .balance_every = 200ms};
  }
  world_options options() {
    return {.lease_ttl = 2s, .real_time = true, .broker = [this](const environment& env) {
              return rabbitmq::open(url, broker_options(env));
            }};
  }

  // Load, then `disturb` with its end, then more load, until everything is applied.
  void survive(const std::function<void(order_world&)>& disturb) {
    rabbitmq::open(url, broker_options({}))->subscribe({"warehouse", {"orders"}})->leave();
    order_world world(dir, options());
    producers load(world);
    {
      background relaying(world.relay());
      background consuming(world.consumer());
      await([&] { return world.consumer().counts().applied > 50; });
      disturb(world);
      const auto placed = load.placed.load();
      await([&] { return load.placed > placed + 100; });
      load.stop();
      await([&] { return shipped(world) >= load.placed; });
    }
    expect_unharmed(world, load.placed, [](const auto& report) { return report.clean(); });
  }

  static std::size_t complaints(order_world& world) {
    return world.log().count("consumer_paused") + world.log().count("relay_paused") +
           world.log().count("service_failed") + world.log().count("broker_connection_lost");
  }

  std::string url;
  temp_dir dir;
  scratch_broker corner;
};

// Proves C1, C3, O3, O4
TEST_F(rabbitmq_outage, of_the_line_for_seconds_ends_without_harm) {
  tcp_proxy line("127.0.0.1", port_of(url));
  url = with_port(url, line.port());
  survive([&](order_world& world) {
    const auto before = complaints(world);
    line.refuse(true);
    line.cut_all();
    std::this_thread::sleep_for(4s);
    line.refuse(false);
    EXPECT_GT(complaints(world), before) << "nothing was away";
  });
}

// Proves C1, O3, O4
TEST_F(rabbitmq_outage, by_cuts_at_any_byte_of_either_direction_ends_without_harm) {
  tcp_proxy line("127.0.0.1", port_of(url));
  url = with_port(url, line.port());
  survive([&](order_world&) {
    for (const auto which : {tcp_proxy::to_server, tcp_proxy::to_client})
      for (const std::size_t after : {0, 1, 5, 8, 40, 333, 700, 1111, 2500, 6000, 20000}) {
        line.arm(which, tcp_proxy::cut, after);
        await([&] { return line.struck(); });
      }
  });
}

// Proves C1, C3, O3, O4
TEST_F(rabbitmq_outage, by_a_line_that_stalls_ends_without_harm) {
  tcp_proxy line("127.0.0.1", port_of(url));
  url = with_port(url, line.port());
  survive([&](order_world&) {
    for (const auto which : {tcp_proxy::to_server, tcp_proxy::to_client}) {
      line.arm(which, tcp_proxy::stall, 1000);
      await([&] { return line.struck(); });
      std::this_thread::sleep_for(3s);  // longer than two heartbeats
      line.disarm();
    }
  });
}

// Proves C1, C4: a consumer that was stopped past its heartbeats, replaced and woken
TEST_F(rabbitmq_outage, of_a_sleeping_consumer_ends_without_harm) {
  rabbitmq::open(url, broker_options({}))->subscribe({"warehouse", {"orders"}})->leave();
  {
    order_world made(dir, options());
  }
  child_process sleeper([&] {
    order_world world(dir, options());
    while (world.consumer().counts().applied <= 10) world.consumer().run_once();
    ::raise(SIGSTOP);                        // between two transactions: it must not keep the file's lock
    background consuming(world.consumer());  // and whatever it throws is tried again
    ::pause();
    return 0;
  });
  order_world world(dir, options());
  producers load(world);
  {
    background relaying(world.relay());
    sleeper.await_stop();
    background consuming(world.consumer());
    const auto before = shipped(world);
    await([&] { return shipped(world) > before + 100; });
    sleeper.resume();
    const auto placed = load.placed.load();
    await([&] { return load.placed > placed + 200; });
    load.stop();
    await([&] { return shipped(world) >= load.placed; });
  }
  sleeper.kill();
  expect_unharmed(world, load.placed, [](const auto& report) { return report.clean(); });
}

struct rabbitmq_of_its_own : rabbitmq_outage {
  void SetUp() override {
    rabbitmq_outage::SetUp();
    if (IsSkipped()) return;
    server.emplace("rabbitmq");
    url = server->rabbitmq_url();
  }
  std::optional<private_server> server;
};

// Proves C1, C3, O3, O4
TEST_F(rabbitmq_of_its_own, that_is_killed_and_started_again_loses_nothing) {
  survive([&](order_world& world) {
    const auto before = complaints(world);
    server->command("crash rabbitmq");
    server->command("start rabbitmq");
    EXPECT_GT(complaints(world), before) << "nothing was away";
  });
}

// Proves C3, O3
TEST_F(rabbitmq_of_its_own, that_is_out_of_memory_pauses_publishers_and_charges_nobody) {
  const auto watching = rabbitmq::open(url, broker_options({}));
  const auto trouble = [&] { return watching->inspection()->trouble(); };
  survive([&](order_world& world) {
    EXPECT_EQ(trouble(), "");
    server->command("rabbitmqctl set_vm_memory_high_watermark absolute 1");
    await([&] { return world.log().count("relay_paused") > 0; });
    await([&] { return trouble().find("takes no messages: low on memory") != std::string::npos; });
    EXPECT_FALSE(watching->inspection()->groups().empty()) << "who only looks is not held up";
    std::this_thread::sleep_for(3s);
    server->command("rabbitmqctl set_vm_memory_high_watermark absolute 512MB");
    await([&] { return trouble().empty(); });
  });
}

}  // namespace
}  // namespace settle::test
