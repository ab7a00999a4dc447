// Expected: the work of settle::once takes (settle::transaction&) and returns a settle::answer
#include "settle/once.hpp"

void wrong(settle::owned_transaction& tx) {
  settle::once(tx, {"shop", "ann", "k-1"}, [] { return settle::answer{}; });  // here
}
