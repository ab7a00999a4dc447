// Expected: settle: give this argument a name first: GCC 12 destroys temporaries twice in an expression with
// co_await
#include "settle/saga.hpp"

struct order {
  std::string id;
};
template <>
struct settle::codec<order> {
  static std::string encode(const order& o) { return o.id; }
  static order decode(std::string_view bytes) { return {std::string(bytes)}; }
};

const auto reserve = settle::local("reserve", [](settle::transaction&, const int&, const order&) {});

settle::flow<> body(settle::saga& saga, const order& o) {
  co_await saga.attempt(reserve, 1, o);
  const auto done = co_await saga.attempt(reserve, 2, order{"1"});  // here
}
