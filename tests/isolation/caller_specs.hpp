// Callers that meet. The real library passes these specs, and each has a bug of the zoo that it finds.
#pragma once

#include "isolation/callers_world.hpp"

namespace settle::isolation {

exploration movers_of_one_row(callers_world& in);
exploration takers_of_the_rest(callers_world& in);
exploration baskets_in_opposite_order(callers_world& in);
exploration requests_with_one_key(callers_world& in);
exploration deliveries_of_one_webhook(callers_world& in);

}  // namespace settle::isolation
