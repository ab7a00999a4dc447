#include "base/encoding.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

TEST(encoding, base64_is_that_of_its_standard) {
  const std::pair<std::string, std::string> pairs[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {std::string("\0\xff", 2), "AP8="}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(encoding, every_byte_comes_back) {
  std::string all;
  for (int n = 0; n < 256; ++n) {
    all += static_cast<char>(n);
    EXPECT_EQ(from_base64(to_base64(all)), all);
    EXPECT_EQ(from_hex(to_hex(all)), all);
  }
  EXPECT_EQ(to_hex(std::string("\x00\xab", 2)), "00ab");
}

TEST(encoding, what_is_not_exactly_right_is_refused) {
  for (const std::string text : {"Zg", "Zg=", "Zh==", "Z===", "Zm9v\n", "Zm 9", "Zm9-"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  for (const std::string text : {"a", "0g", " 0"}) EXPECT_EQ(from_hex(text), std::nullopt) << text;
}

}  // namespace
}  // namespace settle
