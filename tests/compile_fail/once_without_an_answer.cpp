// Expected: the work of settle::once takes (settle::transaction&) and returns a settle::answer
#include "settle/once.hpp"

void wrong(settle::database& db) {
  settle::once(db, {"shop", "ann", "k-1"}, [](settle::transaction&) {});  // here
}
