// The checker for systems without an effect log: outbox against broker against deduplication records.
#pragma once

#include "settle/verify.hpp"

namespace settle {

// Judges what the records can tell: an event that is in no place where it should be is lost. Says in
// not_judged what they cannot tell.
verify_report verify_records(const verify_input& input);

}  // namespace settle
