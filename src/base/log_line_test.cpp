#include "base/log_line.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

constexpr timestamp at{std::chrono::seconds(1'700'000'000)};

TEST(log_line, has_time_level_event_and_fields) {
  EXPECT_EQ(log_line(at, log_level::warning, "relay_paused", {{"fault", "destination"}, {"failures", "2"}}),
            "2023-11-14T22:13:20.000000Z warning relay_paused fault=destination failures=2\n");
}

TEST(log_line, a_value_cannot_pass_for_another_field_or_line_or_control_a_terminal) {
  const auto value = [](const std::string& given) {
    const auto line = log_line(at, log_level::info, "e", {{"v", given}});
    return line.substr(line.find("v=") + 2);
  };
  EXPECT_EQ(value("plain"), "plain\n");
  EXPECT_EQ(value(""), "\"\"\n");
  EXPECT_EQ(value("two words"), "\"two words\"\n");
  EXPECT_EQ(value("x=1"), "\"x=1\"\n");
  EXPECT_EQ(value("say \"hi\""), "\"say \\\"hi\\\"\"\n");
  EXPECT_EQ(value("a\\b"), "\"a\\\\b\"\n");
  EXPECT_EQ(value("a\nb\tc\x1b[2Jd\x7f"), "\"a b c [2Jd \"\n");
  EXPECT_EQ(value("Zürich"), "Zürich\n");
}

}  // namespace
}  // namespace settle
