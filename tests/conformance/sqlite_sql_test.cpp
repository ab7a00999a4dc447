// SQLite against the SQL conformance suite.
#include "conformance/sql_suite.hpp"
#include "settle/sqlite.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

class sqlite_storage final : public sql_storage {
 public:
  std::unique_ptr<database> open(const open_settings& with) override {
    return sqlite::open(
        dir_.file("test.db"),
        {.env = with.env, .busy_timeout = with.busy_timeout, .connections_max = with.connections_max});
  }

 private:
  temp_dir dir_;
};

sql_driver sqlite_driver() {
  return {.name = "sqlite", .fresh = [] { return std::make_unique<sqlite_storage>(); }, .bytes_type = "blob"};
}

INSTANTIATE_TEST_SUITE_P(conformance, sql_conformance, ::testing::Values(sqlite_driver()), driver_name);

}  // namespace
}  // namespace settle::test
