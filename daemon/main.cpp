// settled: reads its configuration, runs until SIGTERM or SIGINT, says why if it cannot.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "compose/service_database.hpp"
#include "daemon/app.hpp"
#include "daemon/command_line.hpp"
#include "daemon/data_folder.hpp"
#include "daemon/load.hpp"
#include "daemon/log.hpp"
#include "daemon/startup_error.hpp"
#include "settle/error.hpp"

namespace settle::daemon {
namespace {

sigset_t stopping_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// Threads inherit the blocked signals, so only wait_for_stop() receives them and nothing runs in a handler.
// A reader of our log or of an answer that goes away is no reason to die.
void take_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  const auto set = stopping_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// After the first signal the next one kills: whoever sends two does not want to wait.
std::string_view wait_for_stop() {
  const auto set = stopping_signals();
  int received = 0;
  sigwait(&set, &received);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return received == SIGINT ? "SIGINT" : "SIGTERM";
}

int complain(std::string_view why, int code) {
  std::istringstream lines{std::string(why)};
  for (std::string line; std::getline(lines, line);) fmt::print(stderr, "settled: {}\n", line);
  return code;
}

int print(const std::string& text) {
  fmt::print("{}", text);
  return std::fflush(stdout) == 0 ? exit_clean : complain("cannot write the output", exit_cannot_start);
}

int serve(const loaded& settings) {
  take_signals();
  line_log log(settings.values.log);
  for (const auto& warning : settings.warnings)
    log.write(log_level::warning, "configuration_doubtful", {{"why", warning}});
  prepare_data_folder(settings.values.data, log);
  if (!settings.values.database.empty() && !compose::is_postgres(settings.values.database))
    require_local_file(settings.values.database);
  app running(settings.values, log);
  running.stop(wait_for_stop());
  return exit_clean;
}

int run(int argc, char** argv) try {
  const auto asked = parse_command_line(argc, argv, environ);
  if (asked.print) return print(*asked.print);
  const auto settings = load_configuration(asked.given);
  if (asked.print_config) return print(print_configuration(settings));
  return serve(settings);
} catch (const error& e) {
  return complain(e.what(), e.retryable() ? exit_store_unavailable : exit_cannot_start);
} catch (const std::exception& e) {
  return complain(e.what(), exit_cannot_start);
}

}  // namespace
}  // namespace settle::daemon

int main(int argc, char** argv) { return settle::daemon::run(argc, argv); }
