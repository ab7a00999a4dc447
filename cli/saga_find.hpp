// The saga that somebody means.
#pragma once

#include <string>

#include "cli/context.hpp"
#include "inspect/sagas.hpp"

namespace settle::cli {

// By its id, or by its entity: of several that one which has not ended. Throws a failure that names them if
// it cannot tell, or says where to look if there is none.
inspect::saga_state find_saga(database& db, const std::string& id_or_entity);

// Likewise of one that is there.
inspect::saga_state read_again(database& db, saga_id id);

// Who acts, for the record: --who, else the user's name.
std::string operator_name(const std::string& given);

// Throws a failure if it is empty.
void require_reason(const std::string& reason, const char* where);

}  // namespace settle::cli
