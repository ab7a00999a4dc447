// Expected: settle: a saga stores inputs and results of its steps, and does not know how to store this type
#include "settle/saga.hpp"

struct unstorable {};
const auto wrong = settle::local("wrong", [](settle::transaction&, const unstorable&) {});  // here
