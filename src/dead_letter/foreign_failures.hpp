// What others noted on a message that they gave up, read from its headers. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "settle/dead_letter.hpp"

namespace settle::inline v0::dlq {

struct foreign_failures {
  std::vector<failed_attempt> history;  // oldest first; a time that is not known is zero
  std::int64_t attempts = 0;            // at least as many as the history has
};

foreign_failures read_foreign_failures(const message& of);

}  // namespace settle::inline v0::dlq
