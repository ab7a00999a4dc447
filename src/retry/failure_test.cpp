#include "settle/failure.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle {
namespace {

using test::code_of;
constexpr auto outage = failure_class::outage;
constexpr auto transient = failure_class::transient;
constexpr auto permanent = failure_class::permanent;
constexpr auto poison = failure_class::poison;

TEST(failure_class, has_the_names_that_are_stored) {
  EXPECT_EQ(to_string(outage), "outage");
  EXPECT_EQ(to_string(transient), "transient");
  EXPECT_EQ(to_string(permanent), "permanent");
  EXPECT_EQ(to_string(poison), "poison");
}

TEST(failure_class, of_every_error_code) {
  const std::map<errc, failure_class> expected{
      {errc::invalid_argument, permanent},
      {errc::invalid_name, permanent},
      {errc::payload_too_large, permanent},
      {errc::decode_failed, permanent},
      {errc::message_id_missing, permanent},
      {errc::store_busy, transient},
      {errc::store_unavailable, outage},
      {errc::store_full, outage},
      {errc::store_corrupt, outage},
      {errc::constraint_violated, poison},
      {errc::statement_failed, poison},
      {errc::unexpected_result, poison},
      {errc::transaction_lost, poison},
      {errc::transaction_control, poison},
      {errc::schema_missing, outage},
      {errc::schema_newer, outage},
      {errc::migration_changed, poison},
      {errc::cluster_changed, outage},
      {errc::ownership_lost, transient},
      {errc::destination_unavailable, outage},
      {errc::message_rejected, poison},
      {errc::listen_failed, poison},
      {errc::cancelled, poison},
  };
  for (const auto& one : all_errors()) {
    ASSERT_TRUE(expected.contains(one.code)) << one.name;
    EXPECT_EQ(class_of(error(one.code, "x")), expected.at(one.code)) << one.name;
  }
}

TEST(failure_class, of_what_a_handler_says_and_of_what_nobody_knows) {
  EXPECT_EQ(class_of(handler_failed(permanent, "cancelled long ago")), permanent);
  EXPECT_EQ(class_of(handler_failed(outage, "the bank is closed")), outage);
  EXPECT_EQ(class_of(std::runtime_error("?")), poison);
  EXPECT_EQ(class_of(std::bad_alloc()), poison);
}

TEST(failure_class, of_every_http_status) {
  const std::set<int> away{401, 407, 429, 502, 503, 504, 507, 511}, passes{408, 409, 423, 425},
      never{501, 505};
  for (int status = 100; status < 600; ++status) {
    if (status >= 200 && status < 300) {
      EXPECT_EQ(code_of([&] { class_of_http_status(status); }), errc::invalid_argument) << status;
      continue;
    }
    const bool theirs = status >= 500 && !never.contains(status);
    const auto expected = away.contains(status)     ? outage
                          : passes.contains(status) ? transient
                          : theirs                  ? poison
                                                    : permanent;
    EXPECT_EQ(class_of_http_status(status), expected) << status;
  }
  for (const int no_status : {-1, 0, 99, 600})
    EXPECT_EQ(code_of([&] { class_of_http_status(no_status); }), errc::invalid_argument) << no_status;
}

TEST(failure_class, of_sqlstates) {
  const std::map<std::string_view, failure_class> expected{
      {"08000", outage},    {"08006", outage},    {"25006", outage},    {"28P01", outage},
      {"3D000", outage},    {"53100", outage},    {"53300", outage},    {"57P01", outage},
      {"57P03", outage},    {"58030", outage},    {"25P03", transient}, {"25P04", transient},
      {"40001", transient}, {"40003", transient}, {"40P01", transient}, {"55006", transient},
      {"55P03", transient}, {"57014", transient}, {"72000", transient}, {"22001", permanent},
      {"22P02", permanent}, {"23505", poison},    {"40002", poison},    {"42P01", poison},
      {"57000", outage},    {"P0001", poison},    {"", poison},
  };
  for (const auto& [state, of] : expected) EXPECT_EQ(class_of_sqlstate(state), of) << state;
}

}  // namespace
}  // namespace settle
