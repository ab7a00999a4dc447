#include "settle/request_key.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "settle/ids.hpp"
#include "settle/testing.hpp"
#include "support/expect_error.hpp"
#include "support/golden.hpp"

namespace settle {
namespace {

using test::code_of;
using test::golden_text;

// Proves I9: the same key, the same bytes, in all languages.
TEST(request_key, is_written_as_by_every_other_client_helper) {
  const auto all = test::golden(SETTLE_SOURCE, "keys.json");
  for (const auto& one : all.at("write").as_array()) {
    const auto text = golden_text(one.at("key"));
    for (const auto& [name, form] : {std::pair("quoted", key_form::quoted), {"bare", key_form::bare}}) {
      SCOPED_TRACE(std::string(one.at("name").as_string()) + ", " + name);
      if (one.at(name).is_null())
        EXPECT_EQ(code_of([&] { request_key(text).header(form); }), errc::invalid_argument);
      else
        EXPECT_EQ(request_key(text).header(form), golden_text(one.at(name)));
    }
  }
}

// Proves I9
TEST(request_key, is_read_from_both_forms_and_refused_with_a_reason) {
  const auto all = test::golden(SETTLE_SOURCE, "keys.json");
  for (const auto& one : all.at("read").as_array()) {
    SCOPED_TRACE(one.at("name").as_string());
    const auto read = parse_request_key(golden_text(one.at("header")));
    if (const auto* reason = one.as_object().if_contains("refused")) {
      EXPECT_FALSE(read.key.has_value());
      EXPECT_EQ(to_string(read.refused), reason->as_string());
    } else {
      ASSERT_TRUE(read.key.has_value()) << to_string(read.refused);
      EXPECT_EQ(read.key->text(), golden_text(one.at("key")));
      EXPECT_EQ(read.refused, key_refusal::none);
    }
  }
}

// Proves I9
TEST(request_key, that_was_written_is_read_again) {
  testing::seeded_random random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    const auto length = 1 + random.below(request_key_bytes_max);
    while (text.size() < length) text += static_cast<char>(' ' + random.below('~' - ' ' + 1));
    const request_key key(text);
    EXPECT_EQ(parse_request_key(key.header()).key, key) << text;
  }
}

TEST(request_key, of_any_bytes_is_a_key_or_refused) {
  testing::seeded_random random(11);
  constexpr std::string_view likely = "\"\\, \tab;=\x7f\n";
  for (int i = 0; i < 20'000; ++i) {
    std::string value;
    for (auto length = random.below(12); length > 0; --length)
      value +=
          random.below(8) == 0 ? static_cast<char>(random.below(256)) : likely[random.below(likely.size())];
    const auto read = parse_request_key(value);
    ASSERT_NE(read.key.has_value(), read.refused != key_refusal::none) << ::testing::PrintToString(value);
    if (read.key) {
      ASSERT_EQ(parse_request_key(read.key->header()).key, read.key) << ::testing::PrintToString(value);
    }
  }
}

// Proves I9
TEST(request_key, is_new_for_every_action) {
  testing::manual_time time;
  testing::seeded_random random(1);
  id_source ids(time, random);
  std::set<request_key> keys;
  for (int i = 0; i < 1000; ++i)
    keys.insert(request_key::make({.time = &time, .random = &random, .ids = &ids}));
  EXPECT_EQ(keys.size(), 1000u);
  for (const auto& key : keys) EXPECT_TRUE(uuid::parse(key.text())) << key.text();
}

TEST(request_key, of_the_application_has_to_be_printable_and_short_enough) {
  EXPECT_EQ(request_key("checkout 42").text(), "checkout 42");
  EXPECT_EQ(code_of([] { request_key(""); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { request_key(std::string(256, 'k')); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { request_key("a\nb"); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle
