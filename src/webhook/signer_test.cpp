#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "settle/webhook_signature.hpp"
#include "support/expect_error.hpp"

namespace settle::webhook {
namespace {

const timestamp now{std::chrono::seconds(1'700'000'000)};

verdict checked(const signing& by, const signing& with, std::string_view body) {
  const auto signed_headers = sign(by, body, now, "msg_1");
  request sent{.body = body};
  for (const auto& [name, content] : signed_headers) sent.headers.push_back({name, content});
  return verifier(with).check(sent, now);
}

const std::vector<signing> every_scheme = {
    {.how = scheme::stripe, .keys = {"secret"}},
    {.how = scheme::standard, .keys = {"whsec_c2VjcmV0IGtleSBvZiBtYW55IGJ5dGVz"}},
    {.how = scheme::hmac, .keys = {"secret"}},
    {.how = scheme::hmac,
     .keys = {"secret"},
     .header = "X-Signature",
     .encoding = signature_encoding::base64,
     .prefix = ""},
};

// Proves A3
TEST(webhook_signer, signs_what_a_verifier_of_the_same_scheme_accepts) {
  for (const auto& how : every_scheme) EXPECT_TRUE(checked(how, how, "{\"id\":1}").accepted());
}

TEST(webhook_signer, signs_with_a_key_that_others_refuse) {
  for (const auto& how : every_scheme) {
    auto other = how;
    other.keys = {how.how == scheme::standard ? "whsec_b3RoZXIga2V5IG9mIG1hbnkgYnl0ZXM" : "other"};
    EXPECT_EQ(checked(how, other, "{}").refused, refusal::bad_signature);
  }
}

TEST(webhook_signer, refuses_a_key_that_cannot_sign) {
  const std::string public_key = "whpk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
  const signing by_public{.how = scheme::standard, .keys = {public_key}};
  EXPECT_EQ(test::code_of([&] { sign(by_public, "", now, "1"); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([&] { sign({.how = scheme::stripe}, "", now); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle::webhook
