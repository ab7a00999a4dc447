#include "base/sha256.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace settle {
namespace {

std::string hex(std::string_view text) {
  std::string out;
  for (const auto byte : sha256(text)) out += fmt::format("{:02x}", byte);
  return out;
}

TEST(sha256, gives_the_digests_of_the_standard) {
  EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256, pads_every_length) {
  // around the block's size, where the length does or does not fit behind the text
  EXPECT_EQ(hex(std::string(55, 'a')), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(hex(std::string(56, 'a')), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(hex(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(sha256, is_the_same_with_and_without_the_instructions_of_the_processor) {
  std::string text;
  for (int length = 0; length < 300; ++length) {
    EXPECT_EQ(sha256(text), sha256_anywhere(text)) << length;
    text += static_cast<char>(length * 37);
  }
}

}  // namespace
}  // namespace settle
