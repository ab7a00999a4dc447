// A file that is away: somebody else holds its write lock and does not let go.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "settle/sqlite.hpp"
#include "support/child_process.hpp"

namespace settle::test {

// Another process that takes a file's write lock when told, and keeps it until told. It is forked before
// there are threads.
class lock_holder {
 public:
  explicit lock_holder(const std::string& path)
      : process_([&] {
          take_.await();
          const auto file = sqlite::open(path, {.busy_timeout = std::chrono::seconds(60)});
          const auto held = file->begin();
          taken_.announce();
          release_.await();
          return 0;
        }) {}

  void take() {
    take_.announce();
    taken_.await();
  }
  void release() {
    release_.announce();
    EXPECT_EQ(process_.wait(), 0);
  }

 private:
  pipe_signal take_, taken_, release_;
  child_process process_;
};

}  // namespace settle::test
