// shop all | <service> | audit | storm
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>

#include "audit/audit.hpp"
#include "options.hpp"
#include "service.hpp"
#include "settle/error.hpp"
#include "stores.hpp"
#include "storm/storm.hpp"

namespace {

constexpr const char* usage =
    "shop all [--config FILE]             every service in this process, over embedded files\n"
    "shop SERVICE [--config FILE]         one of them: gateway, order, checkout, payment, warehouse, "
    "notification\n"
    "shop audit [--config FILE]           is anything lost, doubled or stuck? Ends with 1 if so\n"
    "shop storm [--orders N] [--users M] [--chaos 0..10] [--seed S] [--folder F]\n"
    "           [--database CONNINFO] [--broker URL]\n"
    "                                     buyers in a hurry, over services that are killed; ends with the "
    "audit\n"
    "\n"
    "Without --config the services keep their data in ./shop-data. The file is described in "
    "docs/guides/shop.md.\n";

shop::config config_of(const shop::options& given) {
  shop::config made;
  if (given.has("config")) {
    const auto file = given.text("config");
    std::ifstream in(file);
    if (!in) throw shop::usage_error("cannot read " + file);
    made = shop::read_config({std::istreambuf_iterator<char>(in), {}});
  }
  std::filesystem::create_directories(made.folder);
  return made;
}

// Until SIGTERM or SIGINT. They are blocked before any thread begins, so that only this one hears them.
int serve(const std::vector<std::string>& names, const shop::config& of, const sigset_t& signals) {
  const auto broker = shop::open_broker(of.broker_place());
  std::list<shop::running_service> running;
  for (const auto& name : names) {
    running.emplace_back(of, name, *broker);
    std::printf("%s listens on http://127.0.0.1:%d\n", name.c_str(), shop::port_of(of, name));
  }
  std::fflush(stdout);
  int received = 0;
  sigwait(&signals, &received);
  for (auto& one : running) one.stop();
  return 0;
}

int run(int argc, char** argv, const sigset_t& signals) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "storm")
    return shop::storm(shop::options(
        argc, argv, {"orders", "users", "chaos", "seed", "folder", "database", "broker", "products"}));
  if (command == "audit") {
    const auto report = shop::audit(config_of(shop::options(argc, argv, {"config"})));
    std::fputs(shop::to_text(report).c_str(), stdout);
    return report.clean() ? 0 : 1;
  }
  const auto& all = shop::service_names();
  const bool is_service = std::find(all.begin(), all.end(), command) != all.end();
  if (!is_service && command != "all") {
    std::fputs(usage, command.empty() || command == "--help" ? stdout : stderr);
    return command.empty() || command == "--help" ? 0 : 2;
  }
  const auto of = config_of(shop::options(argc, argv, {"config"}));
  return serve(is_service ? std::vector<std::string>{command} : all, of, signals);
}

}  // namespace

int main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    return run(argc, argv, signals);
  } catch (const shop::usage_error& e) {
    std::fprintf(stderr, "shop: %s\n\n%s", e.what(), usage);
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "shop: %s\n", e.what());
    return 3;
  }
}
