#include "storm/processes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

namespace shop {

service_process::service_process(std::string service, std::string config_file, std::string log_file)
    : service_(std::move(service)), config_file_(std::move(config_file)), log_file_(std::move(log_file)) {}

service_process::~service_process() { kill(); }

void service_process::start() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const int log = ::open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const char* const words[] = {program.c_str(), service_.c_str(), "--config", config_file_.c_str(), nullptr};
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot start a process");
  if (pid_ != 0) {
    ::close(log);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing stays behind if the storm itself is interrupted
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv(program.c_str(), const_cast<char* const*>(words));
  ::_exit(127);
}

void service_process::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void service_process::freeze() {
  if (pid_ > 0) ::kill(pid_, SIGSTOP);
}
void service_process::thaw() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

void service_process::stop() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) failed();
}

void service_process::check() {
  if (pid_ <= 0) return;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == 0) return;
  pid_ = 0;
  failed();
}

void service_process::failed() const {
  throw std::runtime_error(service_ + " has ended by itself; its log is " + log_file_);
}

}  // namespace shop
