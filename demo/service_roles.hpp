// What the processes of a storm over the services of a file do. Relaying is settled's own work. Like all of
// the storm, each may be killed at any instruction, and their databases may go away and come back.
#pragma once

#include "workload.hpp"

namespace storm {

// Makes the tables of every service. Throws if one has them already.
void prepare_services(const settings& of);

// Commits its part of the orders of every shop, each shop on a thread of its own: one whose database is away
// delays no other.
void run_service_producer(const settings& of, int index);

// Becomes settled.
void run_daemon(const settings& of, int index);

// Applies the orders of all shops until SIGTERM.
void run_service_consumer(const settings& of, int index);

}  // namespace storm
