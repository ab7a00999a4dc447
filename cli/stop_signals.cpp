#include "cli/stop_signals.hpp"

#include <pthread.h>
#include <signal.h>

namespace settle::cli {
namespace {

sigset_t stopping_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

stop_signals::stop_signals() {
  const auto set = stopping_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { wait_for_signals(); });
}

// The signal that ends the thread is sent to the thread itself, so nobody else can take it.
stop_signals::~stop_signals() {
  closing_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void stop_signals::wait_for_signals() {
  const auto set = stopping_signals();
  int received = 0;
  while (sigwait(&set, &received) == 0 && !closing_) {
    if (stop_.stop_requested())
      cancel_.request_stop();
    else
      stop_.request_stop();
  }
}

}  // namespace settle::cli
