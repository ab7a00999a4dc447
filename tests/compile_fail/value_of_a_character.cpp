// Expected: a character: say std::string(1, c), or static_cast<int>(c)
#include "settle/database.hpp"

void wrong(settle::transaction& tx) {
  tx.execute("insert into grades (grade) values ($1)", {'a'});  // here
}
