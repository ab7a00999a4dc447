// EXPECT_THROW for one code of settle::error: EXPECT_EQ(code_of([&] { tx.commit(); }), errc::store_busy).
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <ostream>

#include "settle/error.hpp"

namespace settle {

// Lets GoogleTest print codes by name. It is found by argument-dependent lookup, hence settle's namespace.
inline void PrintTo(errc code, std::ostream* out) { *out << to_string(code); }

namespace test {

// The code of the settle::error that `action` throws; none if it throws nothing.
template <class Action>
std::optional<errc> code_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const error& e) {
    return e.code();
  }
  return std::nullopt;
}

// Whether `action` throws a settle::error that leaves its outcome open.
template <class Action>
bool leaves_in_doubt(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const error& e) {
    return e.outcome_unknown();
  }
  return false;
}

}  // namespace test
}  // namespace settle
