// Sagas as `settle status` and the gauges show them.
#pragma once

#include <vector>

#include "saga/shared.hpp"

namespace settle::inspect {

// Those that wait for a program that knows them.
inline std::vector<sagas::stranded_sagas> read_stranded_sagas(transaction& look) {
  return sagas::find_stranded(look);
}

}  // namespace settle::inspect
