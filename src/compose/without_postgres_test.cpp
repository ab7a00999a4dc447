#include <gtest/gtest.h>

#include "compose/postgres.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::compose {
namespace {

constexpr const char* server = "host=db dbname=orders password=secret";

TEST(service_database, that_this_build_has_no_driver_for_is_refused_with_what_to_do) {
  EXPECT_NE(missing_driver(server).find("build Settle with -DSETTLE_POSTGRES=ON"), std::string::npos);
  EXPECT_EQ(missing_driver("orders.db"), "");
  for (const auto& refused :
       {test::code_of([] { check_database(server); }), test::code_of([] { open_database(server); }),
        test::code_of([] { open_to_examine(server); })})
    EXPECT_EQ(refused, errc::invalid_argument);
  try {
    open_database(server);
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find(on_postgres::missing()), std::string::npos);
  }
}

TEST(service_database, that_this_build_has_no_driver_for_is_shown_without_any_of_its_words) {
  EXPECT_EQ(without_secrets(server), "a PostgreSQL");
}

}  // namespace
}  // namespace settle::compose
