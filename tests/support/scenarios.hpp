// Scenarios that more than one test program runs.
#pragma once

#include <functional>
#include <string>

#include "settle/testing.hpp"
#include "settle/verify.hpp"
#include "support/scenario_broker.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

// Places four orders and drains them, re-run with a failure and a kill at every fault point, recovered
// each time, and judged by the checker.
testing::exploration explore_order_pipeline(
    const temp_dir& dir, scenario_broker& on,
    const std::function<void(const std::string& where, const verify_report&)>& judged);

}  // namespace settle::test
