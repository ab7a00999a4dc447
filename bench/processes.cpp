#include "processes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <utility>

namespace bench {

child::child(std::vector<std::string> role) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::string flag = "--role";
  std::vector<char*> arguments{self.data(), flag.data()};
  for (auto& word : role) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot start a process");
  if (pid_ == 0) {
    ::execv(self.c_str(), arguments.data());
    ::_exit(127);
  }
}

child::child(child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

child::~child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void child::stop() {
  ::kill(pid_, SIGTERM);
  wait();
}

void child::wait() {
  int status = 0;
  const auto ended = ::waitpid(std::exchange(pid_, -1), &status, 0);
  if (ended < 0 || status != 0) throw std::runtime_error("a child process failed");
}

stop_signal::stop_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void stop_signal::wait() const {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  int signal = 0;
  ::sigwait(&set, &signal);
}

shared_numbers::shared_numbers(const std::filesystem::path& file, std::size_t count) {
  const std::size_t bytes = count * sizeof(std::atomic<std::int64_t>);
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw std::runtime_error("cannot open " + file.string());
  const bool sized = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  void* mapped = sized ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map " + file.string());
  numbers_ = {static_cast<std::atomic<std::int64_t>*>(mapped), count};
}

shared_numbers::~shared_numbers() { ::munmap(numbers_.data(), numbers_.size_bytes()); }

}  // namespace bench
