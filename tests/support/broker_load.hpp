// A world under load on a broker that is a server, for tests of what happens to the server meanwhile.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "settle/codec.hpp"
#include "settle/dead_letter.hpp"
#include "settle/driver/broker.hpp"
#include "settle/outbox.hpp"
#include "settle/publish.hpp"
#include "support/child_process.hpp"
#include "support/order_world.hpp"
#include "support/producers.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {

// Tests with the label `long` say how long a disturbance lasts.
inline std::chrono::seconds lasting(std::chrono::seconds as_a_rule) {
  const char* asked = std::getenv("SETTLE_OUTAGE_SECONDS");
  return asked == nullptr ? as_a_rule : std::chrono::seconds(std::stoi(asked));
}

class broker_under_load : public ::testing::Test {
 public:
  virtual std::unique_ptr<broker> open(const environment& env) const = 0;

  world_options options() const {
    return {.lease_ttl = std::chrono::seconds(2),
            .real_time = true,
            .broker = [this](const environment& env) { return open(env); }};
  }
  void create_group(const std::string& group) const { open({})->subscribe({group, {"orders"}})->leave(); }

  // Its relay and consumer run by themselves, until they are told otherwise.
  struct running {
    explicit running(const broker_under_load& of)
        : world(of.dir, of.options()), load(world), relaying(world.relay()), consuming(world.consumer()) {
      await([&] { return world.consumer().counts().applied > 50; });
    }

    // More load, until everything is applied, apart from so many.
    void finish(std::int64_t missing = 0) {
      const auto placed = load.placed.load();
      await([&] { return load.placed > placed + 100; });
      load.stop();
      await([&] { return shipped(world) >= load.placed - missing; });
      relaying.reset();
      consuming.reset();
    }

    order_world world;
    producers load;
    std::optional<background> relaying, consuming;
  };

  static bool is_clean(const verify_report& report) { return report.clean(); }

  // Load, then `disturb` with its end, then more load, until everything is applied.
  void survive(const std::function<void(order_world&)>& disturb) {
    create_group("warehouse");
    running system(*this);
    disturb(system.world);
    system.finish();
    expect_unharmed(system.world, system.load.placed, is_clean);
  }

  // Nobody is reached, for seconds; what is on its way may still arrive in the first one.
  void survive_without(tcp_proxy& line, std::chrono::seconds lasts) {
    survive([&](order_world& world) {
      line.refuse(true);
      line.cut_all();
      std::this_thread::sleep_for(std::chrono::seconds(1));
      const auto stands_at = shipped(world);
      std::this_thread::sleep_for(lasts - std::chrono::seconds(1));
      EXPECT_EQ(shipped(world), stands_at) << "nothing was away";
      line.refuse(false);
    });
  }

  // In each direction the line is cut after each of these numbers of bytes.
  void survive_cuts(tcp_proxy& line, const std::vector<std::size_t>& after) {
    survive([&](order_world&) {
      for (const auto which : {tcp_proxy::to_server, tcp_proxy::to_client})
        for (const auto bytes : after) {
          line.arm(which, tcp_proxy::cut, bytes);
          await([&] { return line.struck(); });
        }
    });
  }

  // In each direction nothing passes for so long, from the middle of something on.
  void survive_stalls(tcp_proxy& line, duration lasts) {
    survive([&](order_world&) {
      for (const auto which : {tcp_proxy::to_server, tcp_proxy::to_client}) {
        line.arm(which, tcp_proxy::stall, 1000);
        await([&] { return line.struck(); });
        std::this_thread::sleep_for(lasts);
        line.disarm();
      }
    });
  }

  // A consumer that was stopped for longer than anybody waits for it, replaced and woken.
  void survive_a_sleeping_consumer() {
    create_group("warehouse");
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
    expect_unharmed(world, load.placed, is_clean);
  }

  // An event that the broker never takes: it alone is given up, and its key goes on.
  void survive_an_event_of(std::size_t bytes, const std::string& why) {
    create_group("warehouse");
    running system(*this);
    place_large(system.world, bytes);
    await([&] { return !failed_events(system.world.orders()).empty(); });
    system.finish();
    const auto failed = failed_events(system.world.orders());
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].attempts, 5);
    EXPECT_NE(failed[0].last_error.find(why), std::string::npos) << failed[0].last_error;
    const auto report = system.world.verify();
    EXPECT_TRUE(report.clean());
    for (const auto& found : report.findings)
      if (!report.clean())
        ADD_FAILURE() << found.kind << " " << found.subject.substr(0, 40) << " " << found.detail;
    EXPECT_EQ(report.committed, system.load.placed + 1);
    EXPECT_EQ(report.applied, system.load.placed);
    EXPECT_EQ(report.failed, 1);
    EXPECT_TRUE(dead_letters(system.world.warehouse()).empty());
  }

  static void place_large(order_world& world, std::size_t bytes) {
    const order_placed order{"large-" + std::string(bytes, 'x'), customer_of(0), 1};
    const auto id = world.orders().env().ids->next_as<event_id>();
    auto tx = world.orders().begin();
    note_committed(tx, {.topic = "orders", .key = order.customer, .subject = order.order_id, .event = id});
    publish(tx, order, {.id = id});
    tx.commit();
  }

  static std::size_t complaints(order_world& world) {
    return world.log().count("consumer_paused") + world.log().count("relay_paused") +
           world.log().count("service_failed") + world.log().count("broker_connection_lost");
  }

  // What the broker has confirmed is applied, and nothing is on its way.
  static void let_it_drain(running& system) {
    using namespace std::chrono_literals;
    system.relaying.reset();
    auto last = shipped(system.world);
    for (auto since = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - since < 1s;) {
      std::this_thread::sleep_for(50ms);
      if (const auto now = shipped(system.world); now != std::exchange(last, now))
        since = std::chrono::steady_clock::now();
    }
  }

  temp_dir dir;
};

}  // namespace settle::test
