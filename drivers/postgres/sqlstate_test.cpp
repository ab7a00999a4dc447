#include "postgres/sqlstate.hpp"

#include <gtest/gtest.h>

#include "postgres/decode.hpp"
#include "postgres/settings.hpp"
#include "settle/postgres.hpp"
#include "support/expect_error.hpp"

namespace settle::postgres {
namespace {

using test::code_of;

TEST(sqlstate, what_may_succeed_later_is_retryable) {
  for (const auto* state : {"08006", "40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "57P01",
                            "57P02", "57P03", "58030", "25006", "26000", "42P05", "28P01", "3D000"})
    EXPECT_TRUE(info(code_of_sqlstate(state)).retryable) << state;
}

TEST(sqlstate, what_is_wrong_as_it_stands_is_not) {
  for (const auto* state : {"42601", "42501", "42P01", "23505", "22P02", "25P02", "08P01", "0A000", "P0001",
                            "XX000", "XX001", "99999"})
    EXPECT_FALSE(info(code_of_sqlstate(state)).retryable) << state;
}

TEST(sqlstate, a_single_state_wins_over_its_class) {
  EXPECT_EQ(code_of_sqlstate("53100"), errc::store_full);
  EXPECT_EQ(code_of_sqlstate("53300"), errc::store_busy);
  EXPECT_EQ(code_of_sqlstate("53000"), errc::store_unavailable);
  EXPECT_EQ(code_of_sqlstate("23503"), errc::constraint_violated);
  EXPECT_EQ(code_of_sqlstate("XX001"), errc::store_corrupt);
}

TEST(sqlstate, a_refused_connection_has_its_state_only_in_the_text) {
  const auto full = read_connect_failure(
      "connection to server at \"10.0.0.1\", port 5432 failed: FATAL:  53300: sorry, too many clients "
      "already\nLOCATION:  InitProcess, proc.c:352\n");
  EXPECT_EQ(full.code, errc::store_busy);
  EXPECT_EQ(full.sqlstate, "53300");
  EXPECT_EQ(full.text.find("LOCATION"), std::string::npos) << full.text;
  const auto refused =
      read_connect_failure("connection to server failed: Connection refused\n\tIs it running?\n");
  EXPECT_EQ(refused.code, errc::store_unavailable);
  EXPECT_EQ(refused.sqlstate, "");
}

TEST(conninfo, is_never_quoted_when_it_cannot_be_read) {
  for (const auto* bad : {"secret", "host=x password=secret oops", "postgresql://u:secret@h/d?=x", "secret=1",
                          "postgresql://u:secret@h:port:/d?password"}) {
    try {
      open(bad);
      ADD_FAILURE() << bad;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
    }
  }
}

TEST(conninfo, gives_a_name_without_anything_secret) {
  EXPECT_EQ(open("host=db.internal port=5433 dbname=orders user=u password=secret")->name(),
            "database orders at db.internal:5433");
  EXPECT_EQ(open("postgresql://u:secret@db.internal:5433/orders")->name(),
            "database orders at db.internal:5433");
}

TEST(conninfo, gets_limits_for_a_silent_line_unless_it_has_its_own) {
  const auto value_of = [](const std::string& conninfo, const std::string& keyword) {
    for (const auto& [name, text] : read_conninfo(conninfo).keywords)
      if (name == keyword) return text;
    return std::string();
  };
  EXPECT_EQ(value_of("dbname=x", "tcp_user_timeout"), "30000");
  EXPECT_EQ(value_of("dbname=x tcp_user_timeout=5", "tcp_user_timeout"), "5");
  EXPECT_EQ(value_of("dbname=x client_encoding=LATIN1", "client_encoding"), "UTF8");
}

// ndigits, weight, sign, dscale, then digits of base 10000
std::string numeric(std::initializer_list<std::uint16_t> words) {
  std::string bytes;
  for (const auto word : words) {
    bytes += static_cast<char>(word >> 8);
    bytes += static_cast<char>(word & 0xff);
  }
  return bytes;
}

TEST(numeric, is_written_with_all_its_digits) {
  EXPECT_EQ(numeric_text(numeric({0, 0, 0, 0})), "0");
  EXPECT_EQ(numeric_text(numeric({0, 0, 0, 2})), "0.00");
  EXPECT_EQ(numeric_text(numeric({2, 0, 0, 3, 12, 3450})), "12.345");
  EXPECT_EQ(numeric_text(numeric({1, 0, 0x4000, 0, 7})), "-7");
  EXPECT_EQ(numeric_text(numeric({1, 2, 0, 0, 5})), "500000000");
  EXPECT_EQ(numeric_text(numeric({1, 0xffff, 0, 5, 120})), "0.01200");
  EXPECT_EQ(numeric_text(numeric({1, 0xfffe, 0, 8, 1})), "0.00000001");
  EXPECT_EQ(numeric_text(numeric({0, 0, 0xc000, 0})), "NaN");
  EXPECT_EQ(code_of([] { numeric_text("\0\0"); }), errc::store_unavailable);
}

TEST(arrays, are_written_as_literals_with_everything_quoted) {
  const std::vector<std::string> words{"a", "", "q\"u\\o", "{,}", "null"};
  EXPECT_EQ(array(words).text(), R"({"a","","q\"u\\o","{,}","null"})");
  const std::vector<std::int64_t> numbers{1, -2};
  EXPECT_EQ(array(numbers).text(), "{1,-2}");
  const std::vector<blob> bytes{{std::string("\0\xff", 2)}, {}};
  EXPECT_EQ(array(bytes).text(), R"({"\\x00ff","\\x"})");
  EXPECT_EQ(array(std::span<const std::string>()).text(), "{}");
}

}  // namespace
}  // namespace settle::postgres
