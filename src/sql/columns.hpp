// Many rows as the parameters of one statement on PostgreSQL: an array per column, for `unnest`.
#pragma once

#include <span>

#include "settle/database.hpp"

namespace settle::inline v0 {

// Arrays in the server's binary form, which nobody has to quote or to parse: bytea[], text[] or bigint[], as
// the first row has it. So only for named queries, whose texts say the types. A column that is null in the
// first row is null altogether; elsewhere there are no nulls.
parameters columns_of(std::span<const parameters> rows);

}  // namespace settle::inline v0
