// Expected: this event type has no codec
#include <string>
#include <string_view>

#include "settle/consume.hpp"

struct order_placed {
  std::string id;
};

void wrong(settle::consumer& shop) {
  shop.on<order_placed>([](const order_placed&, settle::transaction&) {});  // here
}
