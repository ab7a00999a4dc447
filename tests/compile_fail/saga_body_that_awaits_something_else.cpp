// Expected: settle: a saga's body awaits only what its settle::saga gives it, and other flows
#include "settle/saga.hpp"

settle::flow<> body(settle::saga& saga, const int&) {
  co_await saga.sleep(std::chrono::seconds(1));
  co_await std::suspend_always();  // here
}
