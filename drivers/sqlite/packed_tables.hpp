// What base/packed.hpp packs, as tables in statements: `select value from settle_keys($1)` and
// `select log, position, source, lane, place from settle_places($1)`. A list then costs neither JSON nor a
// statement per row.
#pragma once

#include <sqlite3.h>

namespace settle::inline v0::sqlite {

void add_packed_tables(sqlite3* to);

}  // namespace settle::inline v0::sqlite
