// Commands that work on all services of the daemon's file, one after the other: one that fails does not keep
// the others from their turn, and is named at the end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/failure.hpp"

namespace settle::cli {

class failures_by_name {
 public:
  // Runs it, and notes under this name what it throws. Whether it threw nothing.
  bool attempt(const std::string& name, const std::function<void()>& what);

  struct one {
    std::string name;
    errc code;
    std::string message;
  };
  const std::vector<one>& all() const { return all_; }

  // Throws a failure that names them all, with the code of the first that is of no use to repeat, or of the
  // first; nothing if there is none.
  void throw_if_any() const;

 private:
  std::vector<one> all_;
};

}  // namespace settle::cli
