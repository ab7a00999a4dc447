// make demo: an order storm on the embedded default, with processes killed while it runs. With --config or
// --services it is over many services, each with its own database, and settled relays.
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "roles.hpp"
#include "scratch_databases.hpp"
#include "service_roles.hpp"
#include "services.hpp"
#include "settle/environment.hpp"
#include "storm.hpp"

namespace {

namespace fs = std::filesystem;

// What a storm is told beside its settings.
struct asked {
  std::string role;
  int index = 0;
  bool keep = false;
  int services = 0;
  std::string postgres;
};

int run_role(const storm::settings& of, const std::string& role, int index) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody outlives the storm
  const bool has_file = !of.config.empty();
  if (role == "producer") has_file ? storm::run_service_producer(of, index) : storm::run_producer(of, index);
  if (role == "relay") has_file ? storm::run_daemon(of, index) : storm::run_relay(of, index);
  if (role == "consumer") has_file ? storm::run_service_consumer(of, index) : storm::run_consumer(of, index);
  return 0;
}

// Beside this program when installed, in the next folder of a build.
std::string find_settled() {
  const auto here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const auto& path : {here / "settled", here.parent_path() / "daemon" / "settled"})
    if (fs::exists(path)) return path.string();
  throw std::runtime_error("settled is not beside this program; say where it is with --settled PATH");
}

int run_in(storm::settings of, const asked& how) {
  if (how.services == 0) return storm::run_storm(of);
  if (how.postgres.empty()) {
    of.config = storm::write_services(of, how.services, {});
    return storm::run_storm(of);
  }
  storm::scratch_databases databases(how.postgres, storm::names_of_services(how.services));
  of.config = storm::write_services(of, how.services, databases.conninfos());
  const int code = storm::run_storm(of);
  if (code == 0 && !how.keep) databases.drop();
  return code;
}

// For the processes that are started.
void note_broker(const storm::settings& of) {
  if (of.broker.empty()) return;
  ::setenv(storm::broker_variable, of.broker.c_str(), 1);
  ::setenv(storm::broker_prefix_variable, of.broker_prefix.c_str(), 1);
}

int run_in_fresh_folder(storm::settings of, const asked& how) {
  if (!of.broker.empty() && !of.config.empty())
    throw std::runtime_error("--broker (or STORM_BROKER) and --config: the file names the broker");
  note_broker(of);
  const bool own = of.data.empty();
  if (own) {
    of.data = (fs::temp_directory_path() / "settle-storm-XXXXXX").string();
    if (::mkdtemp(of.data.data()) == nullptr)
      throw std::runtime_error("cannot make a folder like " + of.data);
  } else {
    fs::create_directories(of.data);
  }
  if (!of.config.empty() || how.services > 0)
    of.settled = of.settled.empty() ? find_settled() : fs::absolute(of.settled).string();
  const int code = run_in(of, how);
  if (own && code == 0 && !how.keep)
    fs::remove_all(of.data);
  else
    std::printf("Files and logs are in %s\n", of.data.c_str());
  return code;
}

void add_options(CLI::App& app, storm::settings& of, asked& how) {
  app.add_option("--seed", of.seed, "Repeats workload and kill schedule (default: random)");
  app.add_option("--orders", of.orders, "How many orders (default 10000)")->check(CLI::Range(1, 1'000'000));
  app.add_option("--strikes", of.strikes, "How often somebody is killed or stopped (default 20)")
      ->check(CLI::Range(0, 1000));
  app.add_option("--data", of.data,
                 "An empty folder for the files (default: a temporary one, removed if all is well)");
  app.add_flag("--keep", how.keep, "Keep the temporary folder, and the databases of --postgres");
  auto* file =
      app.add_option("--config", of.config,
                     "Run over the services of this file of settled, with two daemons: `warehouse` ships "
                     "what all others order. Their databases must be empty, and are left as they are");
  app.add_option("--services", how.services,
                 "The same with a file that is written for it, of so many services")
      ->check(CLI::Range(1, 150))
      ->excludes(file);
  app.add_option(
         "--broker", of.broker,
         "A server as the broker instead of a file: amqp://USER:PASSWORD@HOST/VHOST or kafka://HOST. What is "
         "made there begins with order_storm., and the group is removed if all is well. Not with --config, "
         "whose file names it. A password is better in the variable STORM_BROKER")
      ->envname(storm::broker_variable);
  app.add_option("--broker-prefix", of.broker_prefix)->envname(storm::broker_prefix_variable)->group("");
  app.add_option(
         "--postgres", how.postgres,
         "With --services: databases are made on this server, in libpq's keywords (default: files). A "
         "password is better in the variable STORM_POSTGRES")
      ->envname("STORM_POSTGRES");
  app.add_option("--reloads", of.reloads,
                 "How often a daemon is told to read a file that has changed (default 4)")
      ->check(CLI::Range(0, 1000));
  app.add_option("--seconds", of.seconds,
                 "With services: spread the orders over this time (default: as fast as they are committed)")
      ->check(CLI::Range(0, 86'400));
  app.add_option("--settled", of.settled, "The daemon (default: beside this program)");
  app.add_option(
      "--second-host", of.second_host,
      "With services: words before the command of every second process, such as 'ip netns exec other'");
  app.add_option("--role", how.role)->group("");
  app.add_option("--index", how.index)->group("");
  app.add_option("--began", of.began_ms)->group("");
}

}  // namespace

int main(int argc, char** argv) {
  storm::settings of;
  of.seed = settle::system_random().next() % 1'000'000;
  of.reloads = 4;
  asked how;
  CLI::App app(
      "Order storm: commits, relays and applies orders while processes are killed, then checks them.");
  add_options(app, of, how);
  CLI11_PARSE(app, argc, argv);
  try {
    return how.role.empty() ? run_in_fresh_folder(of, how) : run_role(of, how.role, how.index);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "order_storm: %s\n", e.what());
    return 2;
  }
}
