// settled: reads its configuration, runs until SIGTERM or SIGINT, says why if it cannot.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>

#include "config/load.hpp"
#include "daemon/app.hpp"
#include "daemon/config/command_line.hpp"
#include "daemon/data_folder.hpp"
#include "daemon/log.hpp"
#include "daemon/startup_error.hpp"
#include "settle/error.hpp"

namespace settle::daemon {
namespace {

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

// Threads inherit the blocked signals, so only serve() receives them and nothing runs in a handler.
// A reader of our log or of an answer that goes away is no reason to die.
void take_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  const auto set = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int wait_for_signal() {
  const auto set = awaited_signals();
  int received = 0;
  sigwait(&set, &received);
  return received;
}

// From here on the next one that asks to stop kills: whoever sends two does not want to wait. There is
// nothing left to reload.
void let_signals_kill() {
  auto set = awaited_signals();
  sigdelset(&set, SIGHUP);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
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

void write_warnings(const config::loaded& settings, log_sink& log) {
  for (const auto& warning : settings.warnings)
    log.write(log_level::warning, "configuration_doubtful", {{"why", warning}});
}

// The file is read again, the flags and the environment are those of the start. What is wrong is said, and
// then nothing has changed.
void reload(app& running, const config::inputs& given, log_sink& log) try {
  const auto settings = config::load_configuration(given);
  write_warnings(settings, log);
  running.reload(settings.values);
} catch (const std::exception& e) {
  log.write(
      log_level::error, "reload_refused",
      {{"error", e.what()}, {"advice", "everything goes on as before; mend the file and send SIGHUP again"}});
}

int serve(const config::loaded& settings, const config::inputs& given) {
  take_signals();
  line_log log(settings.values.log);
  write_warnings(settings, log);
  data_folder folder(settings.values.data, log);
  app running(settings.values, log);
  folder.keep();
  int received = wait_for_signal();
  for (; received == SIGHUP; received = wait_for_signal()) reload(running, given, log);
  let_signals_kill();
  running.stop(received == SIGINT ? "SIGINT" : "SIGTERM");
  return exit_clean;
}

void say(std::string_view text) noexcept {
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

constexpr std::string_view out_of_memory =
    "settled: out of memory; it ends here. Nothing that was committed is lost, and what was under way is "
    "done again "
    "after the next start. Give it more memory, or lower http.body_bytes_max and http.connections_max\n";

// The last word if an exception gets out of a thread or a noexcept function: one line, whatever it was.
[[noreturn]] void end_with_a_line() noexcept {
  if (std::current_exception() == nullptr) std::abort();
  try {
    throw;
  } catch (const std::bad_alloc&) {
    say(out_of_memory);
    ::_exit(exit_out_of_memory);
  } catch (const std::exception& e) {
    say("settled: bug: an exception that nobody expected: ");
    say(e.what());
  } catch (...) {
    say("settled: bug: an exception that nobody expected");
  }
  say("\n");
  std::abort();
}

int run(int argc, char** argv) try {
  std::set_terminate(end_with_a_line);
  const auto asked = parse_command_line(argc, argv, environ);
  if (asked.print) return print(*asked.print);
  const auto settings = config::load_configuration(asked.given);
  if (asked.print_config) return print(config::print_configuration(settings));
  return serve(settings, asked.given);
} catch (const error& e) {
  return complain(e.what(), e.retryable() ? exit_store_unavailable : exit_cannot_start);
} catch (const std::bad_alloc&) {
  say(out_of_memory);
  return exit_out_of_memory;
} catch (const std::exception& e) {
  return complain(e.what(), exit_cannot_start);
}

}  // namespace
}  // namespace settle::daemon

int main(int argc, char** argv) { return settle::daemon::run(argc, argv); }
