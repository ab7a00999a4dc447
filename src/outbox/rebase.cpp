#include "outbox/rebase.hpp"

#include "queries/outbox.hpp"

namespace settle::outbox {

std::int64_t rebase(transaction& tx) {
  return tx.execute(queries::outbox::rebase_outbox)[0][queries::outbox::rebase_outbox_columns::waiting]
      .integer();
}

}  // namespace settle::outbox
