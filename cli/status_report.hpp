// What `settle status` prints, for people and for machines.
#pragma once

#include <string>
#include <vector>

#include "inspect/broker.hpp"
#include "inspect/service.hpp"
#include "inspect/services.hpp"

namespace settle::cli {

std::string status_text(const inspect::service_state& service, const inspect::broker_state& broker);
std::string status_json(const inspect::service_state& service, const inspect::broker_state& broker);

// A service or a broker of the daemon's file, as it can be named without asking it.
struct listed_store {
  std::string name;   // in the file
  std::string store;  // a file or a server, without secrets
  std::string given;  // the options that lead there when they are typed
};

// All services of a file; the rows of an answer stand in the order of the lists.
struct status_of_all {
  std::vector<listed_store> services;
  std::vector<listed_store> brokers;
  inspect::services_answer told;
};
std::string status_text(const status_of_all& all);
std::string status_json(const status_of_all& all);

}  // namespace settle::cli
