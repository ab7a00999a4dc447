// What this process has in memory, in KiB.
#pragma once

#include <fstream>
#include <string>

namespace bench {

struct memory_use {
  double rss = 0;
  double pss = 0;  // the same with shared pages counted in part
};

inline memory_use memory_now() {
  memory_use found;
  std::ifstream about("/proc/self/smaps_rollup");
  for (std::string name; about >> name;) {
    if (name == "Rss:") about >> found.rss;
    if (name == "Pss:") about >> found.pss;
  }
  return found;
}

}  // namespace bench
