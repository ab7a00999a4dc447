// Which messages of a batch a broker may take. What could not be read back must not be stored: it would block
// its partition. And what comes behind a refused message of its topic and key must not overtake it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "settle/driver/broker.hpp"

namespace settle::inline v0 {

struct admission {
  std::vector<publish_result> results;  // message_rejected for those that are refused
  std::vector<std::size_t> accepted;    // in order
};

// `refusal` tells why this broker in particular cannot take a message; empty: it can.
admission admit(std::span<const message> batch,
                const std::function<std::string(const message&)>& refusal = {});

}  // namespace settle::inline v0
