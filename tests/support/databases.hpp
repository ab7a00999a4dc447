// The databases that a suite runs on, by name.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "settle/database.hpp"

namespace settle::inline v0 {
inline void PrintTo(dialect of, std::ostream* out) {
  *out << (of == dialect::sqlite ? "sqlite" : "postgres");
}
}  // namespace settle::inline v0

namespace settle::test {

inline const auto both_databases = ::testing::Values(dialect::sqlite, dialect::postgres);
inline std::string database_name(const ::testing::TestParamInfo<dialect>& of) {
  return ::testing::PrintToString(of.param);
}

}  // namespace settle::test
