// A fault: the answer to the first effect of a name is lost, and the store is away when it is asked again.
#pragma once

#include <string>
#include <utility>

#include "settle/environment.hpp"
#include "settle/error.hpp"

namespace settle::test {

class lost_answer final : public fault_points {
 public:
  explicit lost_answer(std::string effect) : effect_(std::move(effect)) {}

  void reached(std::string_view point) override {
    if (point == effect_ + ".before" && lost_) throw error(errc::store_unavailable, "away");
    if (point == effect_ + ".after" && !std::exchange(lost_, true))
      throw error::with_unknown_outcome(errc::store_unavailable, "no answer");
  }

  bool lost() const { return lost_; }

 private:
  std::string effect_;
  bool lost_ = false;
};

}  // namespace settle::test
