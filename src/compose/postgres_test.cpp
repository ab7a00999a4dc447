#include "compose/postgres.hpp"

#include <gtest/gtest.h>

#include "support/databases.hpp"

namespace settle::compose {
namespace {

TEST(service_database, that_is_a_server_is_opened_by_its_driver) {
  EXPECT_EQ(missing_driver("host=db"), "");
  const auto server = open_database("postgresql://me:secret@db.internal:5433/orders");
  EXPECT_EQ(server->speaks(), dialect::postgres);
  EXPECT_EQ(server->name(), "database orders at db.internal:5433");
}

TEST(service_database, is_shown_without_its_passwords) {
  EXPECT_EQ(without_secrets("postgresql://me:secret@db:5433/orders?sslmode=require"),
            "user=me dbname=orders host=db port=5433 sslmode=require");
  EXPECT_EQ(without_secrets("host=db password=secret sslpassword=secret"), "host=db");
  EXPECT_EQ(without_secrets("application_name='a \\'b\\\\ c' password='se cret'"),
            "application_name='a \\'b\\\\ c'");
}

}  // namespace
}  // namespace settle::compose
