// Expected: this event type has no codec
#include <string>
#include <string_view>

#include "settle/publish.hpp"

struct order_placed {
  std::string id;
};

void wrong(settle::transaction& tx) {
  settle::publish(tx, order_placed{"o-1"});  // here
}
