#include "redis/address.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"

namespace settle::redis {
namespace {

TEST(redis_address, has_what_the_url_says_and_the_usual_for_the_rest) {
  EXPECT_EQ(parse_url("redis://"), address{});
  EXPECT_EQ(parse_url("redis://cache.internal"), (address{.host = "cache.internal"}));
  EXPECT_EQ(parse_url("redis://cache:7000/3"), (address{.host = "cache", .port = 7000, .database = 3}));
  EXPECT_EQ(parse_url("redis://:secret@cache/"), (address{.host = "cache", .password = "secret"}));
  EXPECT_EQ(parse_url("redis://me:a%40b%3A%25@[::1]:7000"),
            (address{.host = "::1", .port = 7000, .user = "me", .password = "a@b:%"}));
  EXPECT_EQ(parse_url("redis://me:a@b@cache").password, "a@b");
  EXPECT_EQ(parse_url("redis://me:secret@cache:7000/3").name(), "redis cache:7000/3");
}

TEST(redis_address, what_cannot_be_read_is_refused_without_the_password) {
  for (const std::string url :
       {"", "cache", "http://cache", "rediss://:secret@cache", "redis://:secret@cache:port",
        "redis://:secret@cache:70000", "redis://:secret@cache/x", "redis://:secret@cache/-1",
        "redis://:secret@[::1", "redis://:secret@[::1]7000", "redis://:secret%4@cache",
        "redis://:secret%xx@cache"}) {
    try {
      parse_url(url);
      ADD_FAILURE() << url << " was accepted";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument) << url;
      EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace settle::redis
