// What each process of the storm does. Every one of them may be killed at any instruction.
#pragma once

#include "workload.hpp"

namespace storm {

// Makes the files and tables.
void prepare(const settings& of);

// Commits its part of the orders, each with its event in one transaction, then returns. Started again
// after a kill it begins anew: an order that was committed before refuses to be committed twice.
void run_producer(const settings& of, int index);

// Relays until SIGTERM, and sends some messages twice on purpose.
void run_relay(const settings& of, int index);

// Applies orders until SIGTERM.
void run_consumer(const settings& of, int index);

}  // namespace storm
