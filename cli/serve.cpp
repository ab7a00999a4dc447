// settle serve: becomes the daemon. The daemon is a program of its own, so that a machine may have either.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/help.hpp"
#include "cli/usage.hpp"

namespace settle::cli {
namespace {

namespace fs = std::filesystem;

fs::path beside_this_program() {
  std::error_code failed;
  const auto self = fs::read_symlink("/proc/self/exe", failed);
  return failed ? fs::path() : self.parent_path() / "settled";
}

// Returns only if there is no such program, or none that can be started.
void become(const std::string& program, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (auto& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);
  ::execvp(program.c_str(), argv.data());
}

// The environment reaches the daemon by itself; handing it over as a flag would only hide where it came from.
int serve_command(const context& shared, const CLI::App& program, const std::vector<std::string>& rest) {
  if (!shared.broker.empty())
    throw failure(errc::invalid_argument,
                  "serve takes the folder of the broker's file with --data, not --broker");
  if (is_typed(program, "--service", "SETTLE_SERVICE", shared.service))
    throw failure(errc::invalid_argument, "serve serves all services of its file; leave out --service");
  // Not as an argument: everybody on this machine can read those, and there may be a password in it.
  if (!shared.database.empty()) ::setenv("SETTLE_DATABASE", shared.database.c_str(), 1);
  std::vector<std::string> arguments{"settled"};
  if (is_typed(program, "--data", "SETTLE_DATA", shared.data))
    arguments.insert(arguments.end(), {"--data", shared.data});
  if (is_typed(program, "--config", "SETTLE_CONFIG", shared.config))
    arguments.insert(arguments.end(), {"--config", shared.config});
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  const auto beside = beside_this_program();
  if (!beside.empty()) become(beside.string(), arguments);
  if (!beside.empty() && errno != ENOENT)
    throw failure(errc::invalid_argument,
                  fmt::format("cannot start {}: {}", beside.string(), std::strerror(errno)));
  become("settled", arguments);
  if (errno != ENOENT)
    throw failure(errc::invalid_argument, fmt::format("cannot start settled: {}", std::strerror(errno)));
  throw failure(errc::invalid_argument,
                fmt::format("there is no program settled, neither {} nor in the folders of PATH; install it",
                            beside.empty() ? "beside this one" : "at " + beside.string()));
}

}  // namespace

void add_serve(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("serve",
                        "Run the daemon: relay, health, readiness and metrics, until SIGTERM.\n"
                        "Starts `settled` with the arguments that follow; see `settled --help`.");
  command.app().fallthrough(false);
  command.app().prefix_command();
  describe_command(command,
                   "  settle serve                                     in settle-data/, on 127.0.0.1:8600\n"
                   "  settle serve --data /var/lib/settle --listen 127.0.0.1:9000\n"
                   "  settle serve --config settled.toml --print-config");
  command.callback([to, &shared, command] {
    shared.run = [to, &shared, command] {
      return serve_command(shared, to.app(), command.app().remaining());
    };
  });
}

}  // namespace settle::cli
