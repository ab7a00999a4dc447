// What people see while the storm runs: on a terminal one line that moves, elsewhere a line a second.
#pragma once

#include <cstdint>
#include <string>

namespace storm {

// 1234567 → 1,234,567
std::string grouped(std::int64_t number);

class screen {
 public:
  screen();
  void say(const std::string& line);
  void progress(double at, std::int64_t committed, std::int64_t applied, int orders);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  double last_line_ = -1;
};

}  // namespace storm
