// The shop's services as processes that are killed, stopped and started again.
#pragma once

#include <sys/types.h>

#include <string>

namespace shop {

class service_process {
 public:
  service_process(std::string service, std::string config_file, std::string log_file);
  ~service_process();
  service_process(const service_process&) = delete;
  service_process& operator=(const service_process&) = delete;

  // By the thread that lives longest: a process ends with the thread that has started it.
  void start();
  void kill();    // SIGKILL, and waits until it is gone
  void freeze();  // SIGSTOP
  void thaw();    // SIGCONT
  void stop();    // SIGTERM, and waits; throws if it did not end well
  // Throws if it has ended without being asked to.
  void check();

  const std::string& service() const { return service_; }
  bool running() const { return pid_ > 0; }

 private:
  [[noreturn]] void failed() const;

  std::string service_, config_file_, log_file_;
  pid_t pid_ = 0;
};

}  // namespace shop
