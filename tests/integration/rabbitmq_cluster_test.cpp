// A RabbitMQ of three nodes under load, of which those that lead are killed.
#include <chrono>

#include "support/rabbitmq_load.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

struct rabbitmq_cluster : rabbitmq_under_load {
  static constexpr int nodes = 3;

  int port_of_node(int number) const { return port_of(server->rabbitmq_url(number)); }
  static std::string node(int number) { return "rabbitmq" + std::to_string(number); }

  std::optional<private_server> server;
};

// Queues are led by the node that their maker was connected to. So the first kill hits a leader and the
// node that everybody is connected to; each later one hits the node that they have gone to.
// Proves C1, C3, O3, O4, O7
TEST_F(rabbitmq_cluster, whose_leading_nodes_are_killed_one_after_the_other_loses_nothing) {
  server.emplace("rabbitmq_cluster");
  url = server->rabbitmq_url(1);
  tcp_proxy line("127.0.0.1", port_of(url));
  url = with_port(url, line.port());
  survive([&](order_world& world) {
    for (int number = 1; number <= nodes; ++number) {
      const auto before = complaints(world);
      const auto next = number % nodes + 1;
      server->command("crash " + node(number));
      line.lead_to(port_of_node(next));
      await([&] { return complaints(world) > before; });
      const auto stood_at = shipped(world);
      await([&] { return shipped(world) > stood_at + 100; });  // two of three go on without it
      server->command("start " + node(number));
    }
  });
}

// Proves C1, O3, O4, O7: who is connected to another node sees nothing but a pause
TEST_F(rabbitmq_cluster, whose_leading_node_is_killed_serves_those_who_are_connected_to_another) {
  server.emplace("rabbitmq_cluster");
  url = server->rabbitmq_url(1);
  create_group("warehouse");
  url = server->rabbitmq_url(2);
  survive([&](order_world& world) {
    server->command("crash " + node(1));
    const auto stood_at = shipped(world);
    await([&] { return shipped(world) > stood_at + 200; });
    server->command("start " + node(1));
  });
}

}  // namespace
}  // namespace settle::test
