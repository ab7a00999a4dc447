// Where a broker stands, as its inspection tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "settle/driver/broker_inspection.hpp"

namespace settle::inspect {

struct broker_state {
  std::string name;
  std::optional<std::int64_t> bytes;    // that its content takes
  std::vector<inspected_topic> topics;  // by name
  std::vector<inspected_group> groups;  // by group and topic
  std::string trouble = {};             // why it takes no messages now; empty: it does
};

broker_state read_broker(broker_inspection& broker);

}  // namespace settle::inspect
