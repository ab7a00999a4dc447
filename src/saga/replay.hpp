// A body run again against a journal, to see whether it still asks for the same things. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "saga/journal.hpp"
#include "settle/saga_flow.hpp"

namespace settle::sagas {

struct replayed {
  std::string difference = {};  // empty: it asks for what the journal knows
  bool ended = false;
  bool threw = false;       // the difference says what
  std::string result = {};  // of one that has ended
};

// Tells it what the journal knows and stops where that ends. Steps are neither done nor undone.
replayed replay(const detail::saga_definition& what, saga_id id, const std::string& entity,
                std::string_view input, timestamp began, const journal& rows);

}  // namespace settle::sagas
