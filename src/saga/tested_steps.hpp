// Steps as the test kit runs them: they fail when it says so, and their calls are noted.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "settle/saga_testing.hpp"

namespace settle::sagas {

// The world outside of the program: it survives its crashes.
struct step_book {
  struct fault {
    testing::step_fault how{};
    int times = 0;  // left; 0: always
  };
  std::map<std::pair<std::string, bool>, fault, std::less<>> faults = {};  // by step, and whether its undo
  std::map<std::string, detail::step_pointer, std::less<>> replaced = {};
  std::vector<testing::made_call> calls = {};

  std::optional<testing::step_fault> take_fault(const std::string& step, bool undo);
};

// The same saga with such steps. `points` are passed before and after each call.
detail::saga_definition tested(const detail::saga_definition& of, std::shared_ptr<step_book> book,
                               fault_points& points);

}  // namespace settle::sagas
