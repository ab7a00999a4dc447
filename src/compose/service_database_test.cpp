#include "compose/service_database.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "support/databases.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace settle::compose {
namespace {

using test::code_of;

TEST(service_database, is_a_server_if_its_name_begins_like_a_connection_string) {
  for (const auto* server : {"postgres://db/orders", "postgresql://me:secret@db:5433/orders?sslmode=require",
                             "host=db dbname=orders", "dbname = orders", "target_session_attrs=read-write"})
    EXPECT_TRUE(is_postgres(server)) << server;
  for (const auto* file : {"orders.db", "/var/lib/orders", "./host=db", "data/a=b.db", "Host=db", "=", "",
                           "host", "a.b=c", "mysql://db/orders"})
    EXPECT_FALSE(is_postgres(file)) << file;
}

TEST(service_database, is_a_file_unless_its_name_asks_for_a_server) {
  const test::temp_dir dir;
  EXPECT_EQ(open_database(dir.file("a.db"))->speaks(), dialect::sqlite);
}

TEST(service_database, that_is_neither_is_refused_without_being_quoted) {
  for (const auto* wrong :
       {"mysql://me:secret@db/orders", "", "host=db secret", "postgres://me:secret@[db"}) {
    EXPECT_EQ(code_of([&] { check_database(wrong); }), errc::invalid_argument) << wrong;
    EXPECT_EQ(code_of([&] { open_database(wrong); }), errc::invalid_argument) << wrong;
    try {
      check_database(wrong);
    } catch (const error& e) {
      EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
    }
  }
}

TEST(service_database, that_is_a_file_is_shown_as_it_is) {
  EXPECT_EQ(without_secrets("/data/orders.db"), "/data/orders.db");
}

}  // namespace
}  // namespace settle::compose
