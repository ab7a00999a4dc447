// Fuzz entries that have no test of their own, over their corpus, every beginning of it and a fixed number of
// seeded mutations.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fuzz/entries.hpp"
#include "fuzz/mutation.hpp"

namespace settle::fuzz {
namespace {

void run(void (*entry)(std::string_view), const std::string& folder, const std::vector<std::string>& pieces) {
  const auto seeds = corpus(std::string(SETTLE_CORPUS "/") + folder);
  ASSERT_GE(seeds.size(), 10u);
  for (const auto& seed : seeds)
    for (std::size_t end = 0; end <= seed.size(); ++end) entry(std::string_view(seed).substr(0, end));
  testing::seeded_random random(22);
  for (int i = 0; i < 20'000; ++i) entry(mutated(seeds[random.below(seeds.size())], seeds, pieces, random));
}

TEST(fuzz_corpus, any_body_is_a_call_within_the_limits_or_refused_with_a_document) {
  run(keys_api, "keys_api",
      {"{", "}", "[", "]", ":", ",", "\"", "\\", "\\u0000", "\xff", "null", "1e999",
       "\"token\":", "\"key\":", "-"});
}

// Proves S6
TEST(fuzz_corpus, any_answer_is_the_same_wherever_it_is_cut_and_within_the_limits) {
  run(http_answers, "http_answers",
      {"\r\n", "\n", "\r", ":", " ", ";", "0", "\r\n\r\n", "0\r\n\r\n", "ffffffffffffffff", "chunked",
       "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "HTTP/1.0 200 OK\r\n",
       "HTTP/1.1 100 \r\n\r\n", std::string(400, 'a')});
}

TEST(fuzz_corpus, any_packed_list_ends_and_is_the_same_when_it_is_packed_again) {
  run(packed_lists, "packed_lists",
      {std::string(1, '\0'), "\x01", "\x10", "\x7f", "\x80", "\xff", std::string(10, '\xff')});
}

TEST(fuzz_corpus, what_is_read_of_a_requests_values_is_read_again_from_what_is_written) {
  run(request_values, "request_values",
      {"%",
       "/",
       "?",
       "&",
       "=",
       "#",
       "+",
       ":",
       "-",
       "T",
       "Z",
       "{",
       "}",
       "\"",
       "\\",
       "0",
       "9",
       "\xff",
       std::string(1, '\0'),
       ",",
       "http://"});
}

}  // namespace
}  // namespace settle::fuzz
