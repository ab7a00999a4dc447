// Expected: a scoped enum: say static_cast<int>, or the text that names it
#include "settle/database.hpp"

enum class colour { red };

void wrong(settle::transaction& tx) {
  tx.execute("insert into cars (colour) values ($1)", {colour::red});  // here
}
