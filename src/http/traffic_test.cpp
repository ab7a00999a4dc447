#include "http/traffic.hpp"

#include <gtest/gtest.h>

namespace settle::http {
namespace {

class http_traffic : public ::testing::Test {
 protected:
  std::int64_t requests(std::string_view route) const {
    return counters_.value("settle_http_requests_total",
                           {{"route", route}, {"method", "GET"}, {"status", "2xx"}});
  }

  metrics counters_;
  traffic counts_{environment{.counters = &counters_}};
};

TEST_F(http_traffic, is_counted_by_a_pattern_that_is_gone_when_it_is_flushed) {
  {
    const std::string pattern = "/orders/{id}/of/some/length";
    counts_.request(3, pattern, "GET", 200, duration(1));
  }
  counts_.flush();
  EXPECT_EQ(requests("/orders/{id}/of/some/length"), 1);
}

TEST_F(http_traffic, of_several_tables_is_counted_together_under_one_number) {
  for (int table = 0; table < 3; ++table) {
    const std::string pattern = "/orders";
    counts_.request(1, pattern, "GET", 204, duration(1));
    counts_.request(0, "other", "GET", 200, duration(1));
  }
  counts_.flush();
  EXPECT_FALSE(counts_.has_counts());
  EXPECT_EQ(requests("/orders"), 3);
  EXPECT_EQ(requests("other"), 3);
}

}  // namespace
}  // namespace settle::http
