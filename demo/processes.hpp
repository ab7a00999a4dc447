// Starting, hitting and burying the storm's processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "workload.hpp"

namespace storm {

// One place in the storm; the process that fills it changes.
class place_holder {
 public:
  place_holder(const settings& of, role what, int index) : of_(of), role_(what), index_(index) {}
  ~place_holder();
  place_holder(const place_holder&) = delete;
  place_holder& operator=(const place_holder&) = delete;

  void start();
  void kill();    // SIGKILL, and waits until it is gone
  void freeze();  // SIGSTOP
  void thaw();    // SIGCONT
  void reload();  // SIGHUP
  void stop();    // SIGTERM, and waits

  // Notices an end that nobody asked for; throws if the process failed by itself.
  bool finished();
  bool running() const { return pid_ > 0; }

  role what() const { return role_; }
  int index() const { return index_; }
  std::string name() const;
  std::string log_path() const;

 private:
  void bury();
  void tell(int signal) const;
  void judge_exit(int status) const;
  std::vector<std::string> command() const;

  const settings& of_;
  role role_;
  int index_;
  pid_t pid_ = 0;
};

}  // namespace storm
