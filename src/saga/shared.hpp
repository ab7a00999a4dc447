// What others may know of the rows of sagas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settle/database.hpp"

namespace settle::sagas {

// Sagas of one type and version that are due, and that no running process knows: a newer program has started
// them, or the only one that knew them was taken away. They wait until one comes.
struct stranded_sagas {
  std::string host, type;
  std::int64_t version = 0;
  std::int64_t waiting = 0;
  timestamp since{};  // when the first of them was written last
};

// By host, type and version.
std::vector<stranded_sagas> find_stranded(transaction& look);

}  // namespace settle::sagas
