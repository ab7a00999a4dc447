// Signatures: golden vectors of each specification, and everything that must not be accepted.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/encoding.hpp"
#include "settle/testing.hpp"
#include "settle/webhook_signature.hpp"
#include "support/expect_error.hpp"
#include "support/webhook_signer.hpp"
#include "webhook/crypto.hpp"

namespace settle::webhook {

void PrintTo(refusal of, std::ostream* out) { *out << to_string(of); }

namespace {

using namespace std::chrono_literals;

const timestamp now{1'614'265'330s};
const std::string body = R"({"test": 2432232314})";
const std::string id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const std::string secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const std::string code = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const std::string public_key = "whpk_ZlN4eg7dSSqi0moX9hQUk3orrOouK3QVQSlJa248c/g=";
const std::string signature =
    "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==";

// A Standard Webhooks request, to be spoilt.
struct standard_request {
  std::string id = webhook::id;
  std::string time = "1614265330";
  std::string signature = code;
  std::string body = webhook::body;

  verdict check(const verifier& by, timestamp at = now) const {
    return by.check(
        {.headers = {{"webhook-id", id}, {"webhook-timestamp", time}, {"webhook-signature", signature}},
         .body = body},
        at);
  }
};

verifier standard_verifier(std::vector<std::string> keys = {secret}) {
  return verifier({.how = scheme::standard, .keys = std::move(keys)});
}

const std::string stripe_secret = "whsec_test_secret";
const timestamp stripe_time{1'492'774'577s};
const std::string stripe_body = R"({"id":"evt_1"})";
const std::string stripe_code = "799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f";

verdict check_stripe(const std::string& header, const std::string& content = stripe_body,
                     timestamp at = stripe_time, std::vector<std::string> keys = {stripe_secret}) {
  const verifier by({.how = scheme::stripe, .keys = std::move(keys)});
  return by.check({.headers = {{"stripe-signature", header}}, .body = content}, at);
}

// RFC 4231, cases 1, 2, 6 and 7
TEST(webhook_crypto, computes_the_vectors_of_the_hmac_specification) {
  const auto hex = [](std::string_view key, std::string_view text) {
    return test::to_hex(test::code_of(key, text));
  };
  EXPECT_EQ(hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  const auto parts = hooks::hmac_sha256("Jefe", {"what do ya ", "", "want for nothing?"});
  EXPECT_EQ(parts, hooks::hmac_sha256("Jefe", {"what do ya want for nothing?"}));
}

// RFC 8032, 7.1, tests 2 and 3
TEST(webhook_crypto, accepts_the_vectors_of_the_ed25519_specification_and_no_others) {
  const auto key = *from_hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const auto good = *from_hex(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(hooks::ed25519_verify(key, good, "\x72"));
  EXPECT_FALSE(hooks::ed25519_verify(key, good, "\x73"));
  EXPECT_FALSE(hooks::ed25519_verify(key, good.substr(1), "\x72"));
  EXPECT_FALSE(hooks::ed25519_verify(key.substr(1), good, "\x72"));
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(hooks::ed25519_verify(key, bad, "\x72")) << i;
  }
  EXPECT_TRUE(
      hooks::ed25519_verify(*from_hex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025"),
                            *from_hex("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                                      "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"),
                            "\xaf\x82"));
}

TEST(webhook_encoding, is_strict) {
  EXPECT_EQ(from_hex("00fFa5"), std::string("\0\xff\xa5", 3));
  for (const auto* bad : {"0", "0g", " 00", "0x00", "00 "}) EXPECT_FALSE(from_hex(bad)) << bad;
  EXPECT_EQ(from_base64("AP+l"), std::string("\0\xff\xa5", 3));
  EXPECT_EQ(from_base64("TQ=="), "M");
  EXPECT_EQ(from_base64("TWE="), "Ma");
  EXPECT_EQ(from_base64(""), "");
  for (const auto* bad : {"TQ", "TQ=", "TR==", "TWF=", "=TWE", "T=WE", "TQ==TQ==", "TW-_", "TWE\n", "===="})
    EXPECT_FALSE(from_base64(bad)) << bad;
}

// The time of a comparison must not tell how much of a guess is right. Long texts make the difference plain:
// one that stops early would take a thousandth, which no busy machine hides.
TEST(webhook_crypto, compares_in_a_time_that_does_not_depend_on_the_place_of_a_difference) {
  const std::string right(4 << 20, 'x');
  const auto best_of = [&](std::size_t at) {
    auto wrong = right;
    wrong[at] = 'y';
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 7; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_FALSE(hooks::equal_in_constant_time(right, wrong));
      best = std::min(best, std::chrono::steady_clock::now() - begin);
    }
    return best;
  };
  const auto first = best_of(0), last = best_of(right.size() - 1);
  EXPECT_GT(first * 50, last);
  EXPECT_GT(last * 50, first);
  EXPECT_TRUE(hooks::equal_in_constant_time(right, right));
  EXPECT_FALSE(hooks::equal_in_constant_time(right, "x"));
}

TEST(webhook_crypto, compares_every_pair_wherever_the_right_one_is) {
  const std::vector<hooks::mac> codes = {hooks::hmac_sha256("a", {"text"}),
                                         hooks::hmac_sha256("b", {"text"})};
  const std::vector<std::string> wrong(4, std::string(32, 'x'));
  EXPECT_EQ(hooks::compare_all(codes, wrong).compared, 8u);
  EXPECT_FALSE(hooks::compare_all(codes, wrong).matched);
  for (const auto* key : {"a", "b"})
    for (std::size_t at = 0; at < wrong.size(); ++at) {
      auto candidates = wrong;
      candidates[at] = test::code_of(key, "text");
      const auto found = hooks::compare_all(codes, candidates);
      EXPECT_TRUE(found.matched);
      EXPECT_EQ(found.compared, 8u);
    }
}

// The vectors of the specification's reference libraries. Proves A3
TEST(webhook_verifier, accepts_the_golden_vectors_of_each_scheme) {
  const auto good = standard_request().check(standard_verifier());
  EXPECT_TRUE(good.accepted());
  EXPECT_EQ(good.signed_at, now);
  EXPECT_TRUE((standard_request{.signature = signature}.check(standard_verifier({public_key})).accepted()));
  EXPECT_TRUE(check_stripe("t=1492774577,v1=" + stripe_code).accepted());
  const verifier github({.how = scheme::hmac, .keys = {"It's a Secret to Everybody"}});
  const request hello{
      .headers = {{"X-Hub-Signature-256",
                   "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
      .body = "Hello, World!"};
  EXPECT_TRUE(github.check(hello, now).accepted());
  EXPECT_EQ(github.check(hello, now).signed_at, std::nullopt) << "plain HMAC signs no time";
}

// Proves A3
TEST(webhook_verifier, refuses_a_body_in_which_any_bit_differs_or_anything_is_missing_or_added) {
  const auto by = standard_verifier({secret, public_key});
  for (const auto& signed_with : {code, signature}) {
    standard_request bad{.signature = signed_with};
    ASSERT_TRUE(bad.check(by).accepted());
    for (std::size_t i = 0; i < body.size(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        bad.body = body;
        bad.body[i] = static_cast<char>(bad.body[i] ^ (1 << bit));
        ASSERT_EQ(bad.check(by).refused, refusal::bad_signature) << i << " " << bit;
      }
    for (std::size_t length = 0; length < body.size(); ++length) {
      bad.body = body.substr(0, length);
      ASSERT_EQ(bad.check(by).refused, refusal::bad_signature) << length;
    }
    for (const auto* more : {" ", "\n", "}"}) {
      bad.body = body + more;
      ASSERT_EQ(bad.check(by).refused, refusal::bad_signature);
    }
  }
}

// Proves A3
TEST(webhook_verifier, refuses_a_signature_in_which_any_byte_differs) {
  const auto by = standard_verifier({secret, public_key});
  for (const auto& good : {code, signature})
    for (std::size_t i = 0; i < good.size(); ++i)
      for (int flip : {1, 2, 32, 128}) {
        standard_request bad{.signature = good};
        bad.signature[i] = static_cast<char>(bad.signature[i] ^ flip);
        ASSERT_FALSE(bad.check(by).accepted()) << i << " " << flip;
      }
  for (std::size_t i = 0; i < stripe_code.size(); ++i) {
    auto bad = stripe_code;
    bad[i] = bad[i] == '0' ? '1' : '0';
    ASSERT_EQ(check_stripe("t=1492774577,v1=" + bad).refused, refusal::bad_signature) << i;
  }
}

// Proves A3
TEST(webhook_verifier, refuses_another_id_or_time_than_was_signed) {
  const auto by = standard_verifier();
  EXPECT_EQ((standard_request{.id = "msg_other"}.check(by).refused), refusal::bad_signature);
  EXPECT_EQ((standard_request{.time = "1614265331"}.check(by).refused), refusal::bad_signature);
  EXPECT_EQ((standard_request{.time = "01614265330"}.check(by).refused), refusal::bad_signature);
  EXPECT_EQ(check_stripe("t=1492774578,v1=" + stripe_code).refused, refusal::bad_signature);
  // The signed text cut elsewhere: the dot is what separates its parts.
  const auto cut = test::standard_signature(*from_base64(secret.substr(6)), "msg", now, "1614265330.{}");
  EXPECT_EQ((standard_request{.id = "msg.1614265330", .signature = cut, .body = "{}"}.check(by).refused),
            refusal::malformed);
}

// Proves A3
TEST(webhook_verifier, refuses_what_was_signed_too_long_ago_or_in_the_future) {
  const auto by = standard_verifier();
  const standard_request good;
  EXPECT_TRUE(good.check(by, now + 5min).accepted());
  EXPECT_EQ(good.check(by, now + 5min + 1us).refused, refusal::too_old);
  EXPECT_TRUE(good.check(by, now - 5min).accepted());
  EXPECT_EQ(good.check(by, now - 5min - 1us).refused, refusal::in_future);
  const auto header = "t=1492774577,v1=" + stripe_code;
  EXPECT_EQ(check_stripe(header, stripe_body, stripe_time + 301s).refused, refusal::too_old);
  EXPECT_EQ(check_stripe(header, stripe_body, stripe_time - 301s).refused, refusal::in_future);
  // Who cannot sign is not told about the time.
  EXPECT_EQ((standard_request{.body = "{}"}.check(by, now + 1h).refused), refusal::bad_signature);
  const auto key = *from_base64(secret.substr(6));
  for (const auto* time : {"0", "99999999999"}) {
    const auto forged = "v1," + test::to_base64(test::code_of(key, id + "." + time + "." + body));
    EXPECT_FALSE((standard_request{.time = time, .signature = forged}.check(by).accepted()));
  }
}

// Proves A3
TEST(webhook_verifier, takes_keys_without_their_padding_but_no_such_signature) {
  const std::string key = "key of 16 bytes!";
  auto unpadded = "whsec_" + test::to_base64(key);
  ASSERT_TRUE(unpadded.ends_with("=="));
  unpadded.resize(unpadded.size() - 2);
  const auto by = standard_verifier({unpadded});
  const auto time =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  auto signature = "v1," + test::to_base64(test::code_of(key, id + "." + time + "." + body));
  EXPECT_TRUE((standard_request{.time = time, .signature = signature}.check(by).accepted()));
  while (signature.ends_with('=')) signature.pop_back();
  EXPECT_FALSE((standard_request{.time = time, .signature = signature}.check(by).accepted()));
}

// Proves A3
TEST(webhook_verifier, takes_several_keys_and_signatures_while_keys_are_changed) {
  const auto other = "whsec_" + test::to_base64(std::string(24, 'k'));
  const auto by = standard_verifier({other, public_key, secret});
  EXPECT_TRUE(standard_request().check(by).accepted());
  EXPECT_TRUE((standard_request{.signature = signature}.check(by).accepted()));
  EXPECT_EQ(standard_request().check(standard_verifier({other})).refused, refusal::bad_signature);
  const std::string junk = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,abc v1a,AAAA";
  EXPECT_TRUE((standard_request{.signature = junk + " " + code}.check(by).accepted()));
  EXPECT_TRUE((standard_request{.signature = code + "  " + junk}.check(by).accepted()));
  const auto zeros = std::string(64, '0');
  EXPECT_TRUE(check_stripe("t=1492774577,v1=" + zeros + ",v1=" + stripe_code + ",v0=abc").accepted());
  EXPECT_TRUE(check_stripe("t=1492774577,v1=" + stripe_code, stripe_body, stripe_time, {"old", stripe_secret})
                  .accepted());
  EXPECT_EQ(check_stripe("t=1492774577,v1=" + stripe_code, stripe_body, stripe_time, {"old"}).refused,
            refusal::bad_signature);
}

// An ed25519 signature is no HMAC, a public key no secret: neither stands in for the other.
TEST(webhook_verifier, does_not_confuse_kinds_of_keys) {
  const auto raw_public = *from_base64(public_key.substr(5));
  const auto with_public_key = test::standard_signature(raw_public, id, now, body);
  EXPECT_FALSE(
      (standard_request{.signature = with_public_key}.check(standard_verifier({public_key})).accepted()));
  EXPECT_FALSE((standard_request{.signature = signature}.check(standard_verifier({secret})).accepted()));
  EXPECT_FALSE((standard_request{.signature = "v1" + signature.substr(3)}
                    .check(standard_verifier({public_key}))
                    .accepted()));
}

TEST(webhook_verifier, names_what_is_missing_or_malformed) {
  const auto by = standard_verifier();
  EXPECT_EQ(by.check({}, now).refused, refusal::no_signature);
  EXPECT_EQ((standard_request{.signature = ""}.check(by).refused), refusal::no_signature);
  EXPECT_EQ((standard_request{.signature = "v2,abc"}.check(by).refused), refusal::no_signature);
  EXPECT_EQ((standard_request{.signature = "v1,"}.check(by).refused), refusal::no_signature);
  EXPECT_EQ((standard_request{.id = ""}.check(by).refused), refusal::malformed);
  EXPECT_EQ((standard_request{.id = std::string(256, 'i')}.check(by).refused), refusal::malformed);
  for (const auto* time : {"", "-1", "+1", "1e9", "0x10", " ", "1614265330.5", "999999999999"})
    EXPECT_EQ((standard_request{.time = time}.check(by).refused), refusal::malformed) << time;
  EXPECT_EQ((standard_request{.signature = std::string(4097, 'v')}.check(by).refused), refusal::malformed);
  std::string many;
  for (int i = 0; i < 17; ++i) many += code + " ";
  EXPECT_EQ((standard_request{.signature = many}.check(by).refused), refusal::malformed);
  const std::vector<header> twice = {{"webhook-id", id},
                                     {"webhook-timestamp", "1614265330"},
                                     {"webhook-signature", code},
                                     {"Webhook-Id", "msg_other"}};
  EXPECT_EQ(by.check({.headers = twice, .body = body}, now).refused, refusal::malformed);
  EXPECT_EQ(by.check({.headers = std::vector<header>(201)}, now).refused, refusal::malformed);
  EXPECT_EQ(check_stripe("").refused, refusal::no_signature);
  EXPECT_EQ(check_stripe("t=1492774577,v0=" + stripe_code).refused, refusal::no_signature);
  EXPECT_EQ(check_stripe("v1=" + stripe_code).refused, refusal::malformed);
  EXPECT_EQ(check_stripe("t=1492774577,t=1492774577,v1=" + stripe_code).refused, refusal::malformed);
}

TEST(webhook_verifier, reads_plain_signatures_as_their_provider_writes_them) {
  const auto plain = test::code_of("key", "body");
  const auto check = [](const signing& how, const std::string& value) {
    return verifier(how).check({.headers = {{"x-SIGNATURE", value}}, .body = "body"}, now);
  };
  signing how{.how = scheme::hmac, .keys = {"key"}, .header = "X-Signature", .prefix = ""};
  EXPECT_TRUE(check(how, test::to_hex(plain)).accepted());
  EXPECT_EQ(check(how, "sha256=" + test::to_hex(plain)).refused, refusal::malformed);
  EXPECT_EQ(check(how, test::to_hex(plain.substr(1))).refused, refusal::malformed);
  EXPECT_EQ(check(how, test::to_hex(test::code_of("kez", "body"))).refused, refusal::bad_signature);
  how.encoding = signature_encoding::base64;
  EXPECT_TRUE(check(how, " " + test::to_base64(plain) + " ").accepted());
  how.prefix = "HMAC ";
  EXPECT_TRUE(check(how, "HMAC " + test::to_base64(plain)).accepted());
  // SHA-1: twenty bytes are no signature here, and asking for it is refused at once.
  how.prefix = "sha1=";
  EXPECT_EQ(test::code_of([&] { verifier{how}; }), errc::invalid_argument);
  EXPECT_EQ(check({.how = scheme::hmac, .keys = {"key"}, .header = "X-Signature"},
                  "sha1=" + test::to_hex(plain.substr(0, 20)))
                .refused,
            refusal::malformed);
}

TEST(webhook_verifier, refuses_keys_and_options_that_cannot_work) {
  const auto refused = [](const signing& how) { return test::code_of([&] { verifier{how}; }); };
  const auto standard = [&](const std::string& key) {
    return refused({.how = scheme::standard, .keys = {key}});
  };
  EXPECT_EQ(refused({}), errc::invalid_argument) << "no key";
  EXPECT_EQ(refused({.keys = std::vector(17, secret)}), errc::invalid_argument);
  EXPECT_EQ(refused({.keys = {secret}, .tolerance = 0s}), errc::invalid_argument);
  EXPECT_EQ(refused({.how = scheme::stripe, .keys = {""}}), errc::invalid_argument);
  EXPECT_EQ(refused({.how = scheme::hmac, .keys = {"k"}, .header = ""}), errc::invalid_argument);
  for (const auto* key : {"secret", "whsec_", "whsec_!", "whpk_TQ==", "whsk_TQ=="})
    EXPECT_EQ(standard(key), errc::invalid_argument) << key;
  try {
    verifier({.keys = {"whsec_not!base64"}});
  } catch (const error& e) {
    EXPECT_EQ(std::string(e.what()).find("not!base64"), std::string::npos)
        << "a secret must not end in a log";
  }
}

}  // namespace
}  // namespace settle::webhook
