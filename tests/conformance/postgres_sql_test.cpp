// PostgreSQL against the SQL conformance suite: directly, and through PgBouncer in transaction mode.
#include "conformance/sql_suite.hpp"
#include "settle/postgres.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::test {
namespace {

class postgres_storage final : public sql_storage {
 public:
  postgres_storage() = default;
  explicit postgres_storage(std::string pooler) : pooler_(std::move(pooler)) {}

  std::unique_ptr<database> open(const open_settings& with) override {
    const bool direct = pooler_.empty();
    return postgres::open(direct ? database_.conninfo() : test::with(pooler_, "dbname=" + database_.name()),
                          {.env = with.env,
                           .busy_timeout = with.busy_timeout,
                           .connections_max = with.connections_max,
                           .prepared_statements = direct});
  }

 private:
  std::string pooler_;
  scratch_database database_;
};

sql_driver postgres_driver() {
  return {.name = "postgres",
          .fresh = [] { return std::make_unique<postgres_storage>(); },
          .bytes_type = "bytea",
          .text_holds_nul = false,
          .continues_after_failure = false,
          .outbox_view = "settle.outbox_events",
          .migrations_table = "settle.migrations",
          .missing = postgres_missing};
}

sql_driver pgbouncer_driver() {
  auto driver = postgres_driver();
  driver.name = "pgbouncer";
  driver.fresh = [] { return std::make_unique<postgres_storage>(pgbouncer_conninfo()); };
  driver.wakes_others = false;
  driver.missing = pgbouncer_missing;
  return driver;
}

INSTANTIATE_TEST_SUITE_P(postgres, sql_conformance, ::testing::Values(postgres_driver(), pgbouncer_driver()),
                         driver_name);

}  // namespace
}  // namespace settle::test
