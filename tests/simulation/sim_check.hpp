// What must be true of the simulated world when it has come to rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settle/environment.hpp"
#include "simulation/sim_actors.hpp"

namespace settle::sim {

struct files_to_check {
  std::string vfs;
  environment env;
  std::vector<std::string> services;  // the first one has the orders
  std::string broker;
};

struct check_result {
  std::vector<std::string> problems;
  std::int64_t committed = 0;
  std::int64_t dead_letters = 0;
};

check_result check_world(const files_to_check& files, const memory_of_customers& customers);

// For the bug zoo: the outbox as it would be without AUTOINCREMENT.
void make_rowids_reusable(const std::string& path, const std::string& vfs);

}  // namespace settle::sim
