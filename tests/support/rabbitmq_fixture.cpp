#include "support/rabbitmq_fixture.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "rabbitmq/topology.hpp"

namespace settle::test {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string all;
  char piece[512];
  for (std::size_t got; (got = std::fread(piece, 1, sizeof piece, pipe.get())) > 0;) all.append(piece, got);
  return all;
}

// Where the port stands in a URL, and how long it is.
std::pair<std::size_t, std::size_t> place_of_port(const std::string& url) {
  const auto colon = url.rfind(':');
  return {colon + 1, url.find('/', colon) - colon - 1};
}

std::string variable(const std::string& name) {
  if (const char* set = std::getenv(name.c_str())) return set;
  static const auto lines = output_of("'" SETTLE_SOURCE "/tools/servers' env");
  const auto start = "export " + name + "='";
  const auto at = lines.find(start);
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return lines.substr(from, lines.find('\'', from) - from);
}

}  // namespace

std::string rabbitmq_url() { return variable("SETTLE_TEST_RABBITMQ"); }
std::string rabbitmq_tls_url() { return variable("SETTLE_TEST_RABBITMQ_TLS"); }
std::string rabbitmq_ca_file() { return variable("SETTLE_TEST_RABBITMQ_CA"); }

std::string rabbitmq_missing() {
  if (!rabbitmq_url().empty()) return {};
  const std::string why = "rabbitmq is not running; `tools/servers up rabbitmq` starts it";
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string(ci) == "true") throw std::runtime_error(why + ", and CI=true");
  return why;
}

int port_of(const std::string& url) {
  const auto [from, size] = place_of_port(url);
  return std::stoi(url.substr(from, size));
}

std::string with_port(const std::string& url, int port) {
  const auto [from, size] = place_of_port(url);
  return std::string(url).replace(from, size, std::to_string(port));
}

scratch_broker::scratch_broker() {
  static std::atomic<int> made = 0;
  prefix_ = "test_" + std::to_string(::getpid()) + "_" + std::to_string(++made) + ".";
}

scratch_broker::~scratch_broker() {
  try {
    clear();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
}

void scratch_broker::clear() const {
  const auto within = rabbitmq::limit::within(std::chrono::seconds(60));
  rabbitmq::connection on(rabbitmq::parse_url(rabbitmq_url()), {}, "settle test", within);
  rabbitmq::topology at(on, {prefix_});
  for (const auto& one : at.registry(within)) at.remove(one, within);
  at.remove_registry(within);
}

void scratch_broker::purge() const {
  const auto within = rabbitmq::limit::within(std::chrono::seconds(60));
  rabbitmq::connection on(rabbitmq::parse_url(rabbitmq_url()), {}, "settle test", within);
  rabbitmq::topology at(on, {prefix_});
  for (const auto& one : at.registry(within))
    for (int i = 0; i < one.queues; ++i)
      at.purge(rabbitmq::names{prefix_}.queue(one.group, one.topic, i), within);
}

}  // namespace settle::test
