#include "processes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <vector>

extern char** environ;

namespace storm {

place_holder::~place_holder() {
  if (pid_ > 0) kill();
}

std::string place_holder::name() const {
  return std::string(name_of(role_)) + " " + std::to_string(index_ + 1);
}

std::string place_holder::log_path() const {
  return of_.data + "/" + name_of(role_) + "-" + std::to_string(index_ + 1) + ".log";
}

void place_holder::start() {
  std::vector<std::string> words{"order_storm",
                                 "--role",
                                 name_of(role_),
                                 "--index",
                                 std::to_string(index_),
                                 "--seed",
                                 std::to_string(of_.seed),
                                 "--orders",
                                 std::to_string(of_.orders),
                                 "--data",
                                 of_.data};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  // SIGTERM is blocked from the first instruction on: it may come before the process is ready to wait for it.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  const int failed = ::posix_spawn(&pid_, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
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

void place_holder::freeze() { ::kill(pid_, SIGSTOP); }
void place_holder::thaw() { ::kill(pid_, SIGCONT); }

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
