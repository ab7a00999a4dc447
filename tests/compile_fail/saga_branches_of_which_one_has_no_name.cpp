// Expected: give every branch a name first
#include "settle/saga.hpp"

settle::flow<> part(settle::saga saga) { co_await saga.sleep(std::chrono::seconds(1)); }

settle::flow<> body(settle::saga& saga, const int&) {
  auto one = part(saga.branch(0));
  co_await saga.all(one, part(saga.branch(1)));  // here
}
