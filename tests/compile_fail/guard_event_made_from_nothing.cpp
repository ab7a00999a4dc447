// Expected: std::function<settle::v0::event(const settle::v0::guard_step&)>
#include "settle/guard.hpp"

const settle::guard_options wrong{
    .machine = "order",
    .table = "orders",
    .states = {"NEW", "PAID"},
    .initial = {"NEW"},
    .transitions = {{"NEW", "PAID"}},
    .make_event = [] { return settle::event{}; },  // here
};
