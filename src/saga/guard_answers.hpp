// What participants have recorded.
#pragma once

#include <string>

#include "settle/participate.hpp"

namespace settle::sagas {

// Of the action that this is the undo of, which has been entered; empty if nothing was recorded.
std::string answer_of_action(transaction& tx, const saga_call& what);

}  // namespace settle::sagas
