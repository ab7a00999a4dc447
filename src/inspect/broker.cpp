#include "inspect/broker.hpp"

#include <algorithm>

namespace settle::inspect {

broker_state read_broker(broker_inspection& broker) {
  broker_state state{broker.name(), broker.stored_bytes(), broker.topics(), broker.groups(),
                     broker.trouble()};
  std::ranges::sort(state.topics, {}, &inspected_topic::name);
  return state;
}

}  // namespace settle::inspect
