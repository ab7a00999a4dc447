// Expected: give every branch a name first
#include "settle/saga.hpp"

settle::flow<> part(settle::saga saga) { co_await saga.sleep(std::chrono::seconds(1)); }

settle::flow<> body(settle::saga& saga, const int&) {
  co_await saga.all(part(saga.branch(0)), part(saga.branch(1)));  // here
}
