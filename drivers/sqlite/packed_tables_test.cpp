#include "sqlite/packed_tables.hpp"

#include <gtest/gtest.h>

#include "base/packed.hpp"
#include "settle/sqlite.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

class packed_tables : public testing::Test {
 protected:
  result select(const std::string& what, const value& packed) {
    return db->read().execute("select " + what, {packed});
  }

  test::temp_dir dir;
  std::unique_ptr<database> db = sqlite::open(dir.file("packed.db"));
};

TEST_F(packed_tables, keys_are_rows) {
  const std::vector<std::string_view> keys{"0192f3a1-77b2-7c11-8000-0123456789ab", "order-17"};
  const auto rows = select("value from settle_keys($1)", blob{pack_keys(keys)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0].text(), keys[0]);
  EXPECT_EQ(rows[1][0].text(), keys[1]);
}

TEST_F(packed_tables, places_are_rows) {
  const std::vector<log_places> logs{{"orders/0", "\x12\x34", {{"here", {{3, "a7"}, {200, "a9"}}}}}};
  const auto rows =
      select("log, position, source, lane, place from settle_places($1)", blob{pack_places(logs)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1][0].text(), "orders/0");
  EXPECT_EQ(rows[1][1].text(), "1234") << "its bytes, in digits";
  EXPECT_EQ(rows[1][2].text(), "here");
  EXPECT_EQ(rows[1][3].integer(), 200);
  EXPECT_EQ(rows[1][4].text(), "a9");
}

// Notes from before they were packed have null there.
TEST_F(packed_tables, nothing_has_no_rows) {
  EXPECT_TRUE(select("value from settle_keys($1)", value()).empty());
  EXPECT_TRUE(select("place from settle_places($1)", value()).empty());
}

TEST_F(packed_tables, what_was_cut_off_is_an_error) {
  const std::vector<std::string_view> keys{"order-17"};
  auto packed = pack_keys(keys);
  packed.pop_back();
  EXPECT_EQ(test::code_of([&] { select("value from settle_keys($1)", blob{packed}); }), errc::store_corrupt);
}

}  // namespace
}  // namespace settle
