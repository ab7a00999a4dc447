#include "processes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <vector>

extern char** environ;

namespace storm {

place_holder::~place_holder() {
  if (pid_ > 0) kill();
}

std::string place_holder::name() const {
  const bool is_daemon = role_ == role::relay && !of_.config.empty();
  return std::string(is_daemon ? "daemon" : name_of(role_)) + " " + std::to_string(index_ + 1);
}

std::string place_holder::log_path() const {
  auto file = name();
  std::ranges::replace(file, ' ', '-');
  return of_.data + "/" + file + ".log";
}

std::vector<std::string> place_holder::command() const {
  std::vector<std::string> words;
  std::istringstream before(index_ % 2 == 1 ? of_.second_host : "");
  for (std::string word; before >> word;) words.push_back(word);
  const auto add = [&](const char* option, const std::string& value) {
    words.insert(words.end(), {option, value});
  };
  words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  add("--role", name_of(role_));
  add("--index", std::to_string(index_));
  add("--seed", std::to_string(of_.seed));
  add("--orders", std::to_string(of_.orders));
  add("--data", of_.data);
  if (of_.config.empty()) return words;
  add("--config", of_.config);
  add("--settled", of_.settled);
  add("--seconds", std::to_string(of_.seconds));
  add("--began", std::to_string(of_.began_ms));
  return words;
}

void place_holder::start() {
  auto words = command();
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  // Signals that it waits for are blocked from the first instruction on: they may come before it is ready.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGHUP);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  const int failed =
      ::posix_spawnp(&pid_, words.front().c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(failed));
}

void place_holder::bury() {
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void place_holder::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  bury();
}

void place_holder::tell(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}
void place_holder::freeze() { tell(SIGSTOP); }
void place_holder::thaw() { tell(SIGCONT); }
void place_holder::reload() { tell(SIGHUP); }

void place_holder::stop() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  judge_exit(status);
}

bool place_holder::finished() {
  if (pid_ <= 0) return true;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == 0) return false;
  pid_ = 0;
  judge_exit(status);
  return true;
}

void place_holder::judge_exit(int status) const {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(name() + " failed by itself; its log is " + log_path());
}

}  // namespace storm
