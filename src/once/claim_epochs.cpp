#include "once/claim_epochs.hpp"

#include "queries/once.hpp"

namespace settle::keys {

void skip_claim_epochs(transaction& tx) { tx.execute(queries::once::skip_claim_epochs); }

}  // namespace settle::keys
