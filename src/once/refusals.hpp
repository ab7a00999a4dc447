// What is answered to a request that does not run because of its key. Pure.
#pragma once

#include "settle/claims.hpp"
#include "settle/once.hpp"

namespace settle::keys {

once_result refused(once_outcome why);
// With how long the claim that is in the way still holds, where that is known.
claim_result refused(claim_outcome why, duration lease = {});

}  // namespace settle::keys
