// What operators ask of a saga, as it is stored until its owner has done it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settle/saga.hpp"

namespace settle::sagas {

struct stored_order {
  saga_order what{};
  std::string who = {};
  std::string reason = {};
  std::string result = {};
  bool by_parent = false;  // an abort, which counts for what has completed too
};

std::string order_text(const stored_order& of);
// Nothing: this program does not know it.
std::optional<stored_order> read_order(std::string_view text);

}  // namespace settle::sagas
