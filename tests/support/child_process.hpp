// A forked child for tests across processes. It uses only what it opens itself, and ends with _exit, so
// that nothing of the parent is destroyed twice.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>

namespace settle::test {

// A signal between two processes: one side waits until the other has announced something.
class pipe_signal {
 public:
  pipe_signal() {
    if (::pipe(ends_) != 0) throw std::runtime_error("pipe failed");
  }
  ~pipe_signal() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  pipe_signal(const pipe_signal&) = delete;
  pipe_signal& operator=(const pipe_signal&) = delete;

  void announce(int times = 1) {
    for (int i = 0; i < times; ++i)
      if (::write(ends_[1], "x", 1) != 1) throw std::runtime_error("write to a pipe failed");
  }
  void await() {
    char byte;
    if (::read(ends_[0], &byte, 1) != 1) throw std::runtime_error("read from a pipe failed");
  }

 private:
  int ends_[2];
};

class child_process {
 public:
  static constexpr int threw = 99;  // the exit code of a child whose work threw

  // Runs `work` in the child; its result, 0 to 98, becomes the exit code.
  explicit child_process(const std::function<int()>& work) {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ != 0) return;
    int code = threw;
    try {
      code = work();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child: %s\n", e.what());
    } catch (...) {
    }
    ::_exit(code);
  }
  ~child_process() {
    if (pid_ > 0) kill();
  }
  child_process(child_process&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  child_process& operator=(child_process&&) = delete;

  // The exit code, or minus the number of the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  // Returns when the child has stopped itself with SIGSTOP.
  void await_stop() const {
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) throw std::runtime_error("the child has ended instead of stopping");
  }
  void resume() const { ::kill(pid_, SIGCONT); }
  pid_t pid() const { return pid_; }
  int kill() {
    ::kill(pid_, SIGKILL);
    return wait();
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace settle::test
