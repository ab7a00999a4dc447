// shop storm: buyers in a hurry over services that are killed, a gateway that fails, repeats itself and comes
// late; and the audit at the end.
#pragma once

#include "options.hpp"

namespace shop {

// 0: everything adds up. 1: it does not.
int storm(const options& given);

}  // namespace shop
