#include "redis/answers.hpp"

#include <gtest/gtest.h>

namespace settle::redis {
namespace {

TEST(redis_answers, errors_have_the_code_of_their_first_word) {
  EXPECT_EQ(code_of_error("OOM command not allowed when used memory > 'maxmemory'."), errc::store_full);
  EXPECT_EQ(code_of_error("LOADING Redis is loading the dataset in memory"), errc::store_unavailable);
  EXPECT_EQ(code_of_error("READONLY You can't write against a read only replica."), errc::store_unavailable);
  EXPECT_EQ(code_of_error("BUSY Redis is busy running a script."), errc::store_busy);
  EXPECT_EQ(code_of_error("ERR unknown command"), errc::statement_failed);
  EXPECT_EQ(code_of_error("WRONGTYPE Operation against a key"), errc::statement_failed);
  EXPECT_EQ(code_of_error("OOMPH"), errc::statement_failed);
  EXPECT_EQ(code_of_error(""), errc::statement_failed);
}

TEST(redis_answers, fields_of_info_are_found_by_their_whole_name) {
  constexpr std::string_view info =
      "# Memory\r\nused_memory:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nlast:x";
  EXPECT_EQ(info_field(info, "maxmemory_policy"), "noeviction");
  EXPECT_EQ(info_field(info, "memory"), "");
  EXPECT_EQ(info_field(info, "last"), "x");
  EXPECT_EQ(info_field("", "last"), "");
}

}  // namespace
}  // namespace settle::redis
