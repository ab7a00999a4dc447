// make demo: an order storm on the embedded default, with processes killed while it runs.
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "roles.hpp"
#include "settle/environment.hpp"
#include "storm.hpp"

namespace {

int run_role(const storm::settings& of, const std::string& role, int index) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody outlives the storm
  if (role == "producer") storm::run_producer(of, index);
  if (role == "relay") storm::run_relay(of, index);
  if (role == "consumer") storm::run_consumer(of, index);
  return 0;
}

int run_in_fresh_folder(storm::settings of, bool keep) {
  const bool own = of.data.empty();
  if (own) {
    of.data = (std::filesystem::temp_directory_path() / "settle-storm-XXXXXX").string();
    if (::mkdtemp(of.data.data()) == nullptr)
      throw std::runtime_error("cannot make a folder like " + of.data);
  } else {
    std::filesystem::create_directories(of.data);
  }
  const int code = storm::run_storm(of);
  if (own && code == 0 && !keep)
    std::filesystem::remove_all(of.data);
  else
    std::printf("Files and logs are in %s\n", of.data.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  storm::settings of;
  of.seed = settle::system_random().next() % 1'000'000;
  std::string role;
  int index = 0;
  bool keep = false;
  CLI::App app(
      "Order storm: commits, relays and applies orders while processes are killed, then checks them.");
  app.add_option("--seed", of.seed, "Repeats workload and kill schedule (default: random)");
  app.add_option("--orders", of.orders, "How many orders (default 10000)")->check(CLI::Range(1, 1'000'000));
  app.add_option("--strikes", of.strikes, "How often somebody is killed or stopped (default 20)")
      ->check(CLI::Range(0, 1000));
  app.add_option("--data", of.data,
                 "An empty folder for the files (default: a temporary one, removed if all is well)");
  app.add_flag("--keep", keep, "Keep the temporary folder");
  app.add_option("--role", role)->group("");
  app.add_option("--index", index)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    return role.empty() ? run_in_fresh_folder(of, keep) : run_role(of, role, index);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "order_storm: %s\n", e.what());
    return 2;
  }
}
