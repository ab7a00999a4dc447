// What `settle status` prints, for people and for machines.
#pragma once

#include <string>

#include "inspect/broker.hpp"
#include "inspect/service.hpp"

namespace settle::cli {

std::string status_text(const inspect::service_state& service, const inspect::broker_state& broker);
std::string status_json(const inspect::service_state& service, const inspect::broker_state& broker);

}  // namespace settle::cli
