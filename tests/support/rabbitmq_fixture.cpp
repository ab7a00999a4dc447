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

}  // namespace

std::string rabbitmq_url() {
  constexpr auto name = "SETTLE_TEST_RABBITMQ";
  if (const char* set = std::getenv(name)) return set;
  static const auto lines = output_of("'" SETTLE_SOURCE "/tools/servers' env");
  const auto start = std::string("export ") + name + "='";
  const auto at = lines.find(start);
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return lines.substr(from, lines.find('\'', from) - from);
}

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

}  // namespace settle::test
