// One slice of a sweep over idempotency keys. Claims without an answer stay, so a slice in which there were
// some may have removed less than there is: who wants all goes on while any were put off.
#pragma once

#include <cstdint>

#include "settle/database.hpp"

namespace settle::keys {

struct forgotten {
  std::int64_t gone = 0;
  std::int64_t put_off = 0;  // without an answer; looked at again a day later
};

// In a transaction of its own, at most so many records and as many claims.
forgotten forget_slice(database& db, std::int64_t at_most);

}  // namespace settle::keys
