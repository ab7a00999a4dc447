// Epochs of claims after a restore.
#pragma once

#include "settle/database.hpp"

namespace settle::keys {

// In the transaction that makes a restored PostgreSQL usable again: an epoch that was drawn after the backup
// was made is not drawn a second time.
void skip_claim_epochs(transaction& tx);

}  // namespace settle::keys
