// Expected: settle: the undo of a step takes what the step takes and, if it wants it, the result
#include "settle/saga.hpp"

const auto reserve = settle::local("reserve", [](settle::transaction&, const std::string&) { return 1; });
const auto wrong = reserve.undo([](settle::transaction&, const std::string&, const std::string&) {});  // here
