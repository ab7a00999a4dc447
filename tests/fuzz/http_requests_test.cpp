// The fuzz entry over its corpus and a fixed number of seeded mutations of it.
#include "fuzz/http_requests.hpp"

#include <gtest/gtest.h>

#include "fuzz/entries.hpp"
#include "fuzz/mutation.hpp"

namespace settle::fuzz {
namespace {

std::string shown(const connection& of) {
  return std::to_string(of.requests.size()) + " read, " + std::to_string(of.refused.status) + " " +
         std::string(of.refused.code);
}

void expect_same(const std::string& input, std::size_t first, std::size_t each, const connection& whole) {
  const auto cut = read_in_pieces(input, first, each);
  EXPECT_TRUE(same(cut, whole)) << "cut after " << first << ", then every " << each << ": " << shown(cut)
                                << "; whole: " << shown(whole) << "\n"
                                << ::testing::PrintToString(input);
}

// Proves I1
TEST(http_fuzz, requests_are_the_same_wherever_their_bytes_are_cut_and_truncated) {
  const auto seeds = corpus(SETTLE_HTTP_CORPUS);
  ASSERT_GE(seeds.size(), 20u);
  for (const auto& seed : seeds) {
    for (std::size_t end = 0; end <= seed.size(); ++end) {
      const auto input = seed.substr(0, end);
      const auto whole = read_in_pieces(input, input.size(), 1);
      for (const std::size_t each : {1, 2, 3, 64}) expect_same(input, each, each, whole);
    }
    const auto whole = read_in_pieces(seed, seed.size(), 1);
    for (std::size_t at = 0; at < seed.size(); ++at) expect_same(seed, at, seed.size(), whole);
    http_requests(seed);
    if (HasFailure()) return;
  }
}

// Proves I1
TEST(http_fuzz, requests_of_seeded_mutations_stay_within_limits_and_are_read_again_from_what_is_written) {
  const auto seeds = corpus(SETTLE_HTTP_CORPUS);
  const std::vector<std::string> pieces{"\r\n",
                                        "\n",
                                        "\r",
                                        ":",
                                        " ",
                                        "\t",
                                        std::string(1, '\0'),
                                        "0",
                                        "\xff",
                                        ";",
                                        "\r\n\r\n",
                                        "0\r\n\r\n",
                                        "ffffffffffffffff",
                                        "chunked",
                                        "Content-Length: 5\r\n",
                                        "Transfer-Encoding: chunked\r\n",
                                        "HTTP/1.0",
                                        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        std::string(120, 'a'),
                                        std::string(600, 'b')};
  testing::seeded_random random(18);
  for (int i = 0; i < 30'000; ++i) {
    const auto input = mutated(seeds[random.below(seeds.size())], seeds, pieces, random);
    const auto whole = read_in_pieces(input, input.size(), 1);
    expect_same(input, 1, 1, whole);
    if (!input.empty()) expect_same(input, random.below(input.size()), 1 + random.below(20), whole);
    if (HasFailure()) return;
    http_requests(input);
  }
}

}  // namespace
}  // namespace settle::fuzz
