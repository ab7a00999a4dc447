// For services to which nothing arrives: what is due depends on the clock alone.
#pragma once

#include <utility>

#include "base/pause.hpp"
#include "settle/wakeup.hpp"

namespace settle::inline v0 {

class timer final : public wakeup {
 public:
  void wait(duration at_most, std::stop_token stop) override { pause(at_most, stop); }
};

}  // namespace settle::inline v0
